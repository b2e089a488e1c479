// Package contract holds the tests that every ledger.Backend passes, so that the
// one in memory and the one on a stream cannot come apart, and those of the
// transitions, which must hold over each. Only tests import it.
package contract
