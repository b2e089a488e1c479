// Package plane is the part of a space that keeps its authority: the clients that
// read and write the authority stream, each an actor with a connection of its own.
package plane
