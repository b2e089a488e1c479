// Package operations holds the calls of a host or an operator that need a connection
// of their own: registrations, repairs, and whatever else is allowed to do one thing
// for a minute.
//
// It is a group. Each call has an actor in it, which opens the connection, does its job,
// and ends; the connection is in custody from the first moment, and closed in every
// outcome.
//
// When the space closes, no call is taken any more, and those that are inside end in
// the order in which they came: each has a moment to finish.
package operations
