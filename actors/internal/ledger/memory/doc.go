// Package memory is a ledger.Backend without a broker: a whole one, that keeps
// revisions, batches and conditions exactly as the stream does, for tests and for
// trying things out. Nothing of it survives the process, so no service runs on it.
package memory
