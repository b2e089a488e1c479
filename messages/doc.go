// Package messages is the vocabulary of authplane: the value types that its
// rooms speak in and the messages its actors send each other, one file a
// conversation.
//
// It is the lowest package. Everything here is an immutable value: it holds no
// live resource, no connection, no lock and no logic beyond describing itself,
// so that a message may be copied, kept or logged by whoever receives it. It
// imports nothing of this module, and nothing of NATS or of the actor library.
//
// Reading order: names.go (who), grants.go and authority.go (what is recorded about
// them, and the questions of a connect and an exchange), connect.go (what is kept of
// a connect that was not admitted), plane.go, claim.go, sweep.go and presence.go (who
// runs the plane, and how it is told that somebody is gone), status.go (what an
// operator sees), errors.go and catalogue.go (every way to say no).
//
// What nothing in this program says or asks yet is marked as such.
package messages
