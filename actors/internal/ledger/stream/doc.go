// Package stream is the ledger's backend on JetStream: one stream per space, in an
// account that nobody but this service's own processes may enter.
//
// It speaks to the stream by raw subjects, never through the client library's
// key-value store, which would write over markers and hide them. Reading order:
// config.go (names), open.go and shape.go (whose stream it is, and what it must look
// like), client.go (one request, one answer), backend.go, send.go and list.go (the
// contract of ledger.Backend), leader.go with beat.go and shared.go (reads a decision
// may rest on).
//
// A *nats.Conn comes in from outside and stays its owner's: nothing here dials or
// closes. A LeaderReader runs while its owner runs it; nothing else starts goroutines.
package stream
