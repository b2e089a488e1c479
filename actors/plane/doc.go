// Package plane is the part of a space that keeps its authority: the clients that
// read and write the authority stream, each an actor with a connection of its own,
// and the claim by which one process of a space alone may enumerate and run
// barriers.
package plane
