// Package retirement runs the takeovers and retirements of a space, while this
// process holds its plane.
//
// It is a group. The desk knows what is owed: it begins what any process has asked
// for, sees to it that every operation which is begun has an actor of its own, and
// tells whoever asks how far each is. An operation's actor takes it from the step it
// has reached to the next, until it is done; when it ends early, by a failure or a
// fence, the desk has another one go on later. The sweeper proves for all of them
// together that nobody is connected any more, so that many cost no more than one.
// Where the servers cannot be asked that, it waits for each until whatever was issued
// has run out.
//
// Nothing is remembered but what stands in the ledger: whoever takes the plane next
// goes on with the same operations.
package retirement
