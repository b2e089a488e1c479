// Package client is what the authority's clients have in common: an actor that
// works on one standing connection of its own, answers requests beside its
// Receive, and dies when the connection is lost.
//
// It also asks such actors, with their refusals in the words of the catalogue.
// What a client may do, and what it does, is its own package's business.
package client
