// Package callout is one responder: an actor with a connection of its own into the
// AUTH account, which hears connect requests and answers them.
//
// The goroutine that hears a request only stamps and queues it. A pool of workers
// decides: each opens the request, verifies the bearer, asks the reader what the
// authority holds, and answers on the connection the request came in on. One slow
// decision delays no other; what can no longer be in time is not worked on.
//
// Several responders stand side by side, so that the loss of one connection costs
// nobody a connect.
package callout
