// Package observer is the actor that asks the servers who they are and which
// connections they have: the eyes of evictions and of the plane claim. It holds
// one connection to the system account that may ask that and nothing else, and
// remembers nothing: every answer is as old as its question.
//
// Where the system account is somebody else's, it asks from within CTRL whether
// connections of CTRL live, which is all that an account may learn of itself.
package observer
