// Package reader is the actor that reads what a decision rests on. Whatever it
// answers comes from the leader of the very stream that was remembered, proved on
// the connection that reads; while it cannot prove that, it refuses as unproved.
package reader
