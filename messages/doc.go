// Package messages is the vocabulary of authplane: the value types that its
// rooms speak in and the messages its actors send each other, one file a
// conversation.
//
// It is the lowest package. Everything here is an immutable value: it holds no
// live resource, no connection, no lock and no logic beyond describing itself,
// so that a message may be copied, kept or logged by whoever receives it. It
// imports nothing of this module, and nothing of NATS or of the actor library.
//
// Reading order: names.go (who), grants.go and authority.go (what is recorded
// about them), connect.go and exchange.go (the two questions asked of us),
// status.go (what an operator sees), errors.go and catalogue.go (every way to
// say no).
package messages
