// Package supervisor keeps a tree of actors alive on top of protoactor-go. It knows
// nothing of what the actors are for and could be lifted into another program.
//
// # A tree
//
// A Spec is a leaf, which has an actor, or a group, which has children. Start opens
// the children one after another in the declared order; Tree.Close closes them in
// declared stages, or in the exact reverse. In between the kit restarts what dies, as
// the Policy of each child says.
//
// An actor is an ordinary protoactor actor. It receives its own messages and three of
// the kit's: *Open, *Drain and *Close. It answers those through its Life, at once or
// whenever it is ready; it never blocks in Receive. What takes time runs in Life.Go
// and comes back with Life.Tell.
//
//	func (w *writer) Receive(ctx actor.Context) {
//		switch m := ctx.Message().(type) {
//		case *supervisor.Open:
//			w.life.Go("connect", w.connect) // ends in Opened or Fail
//		case Put:
//			ctx.Respond(w.put(m))
//		case *supervisor.Close:
//			w.life.ClosedWith(w.flush())
//		}
//	}
//
// # What is promised
//
//   - A Ref stays valid over restarts. Whoever asks through it always gets an answer:
//     the actor's, or ErrUnavailable or ErrOverloaded, at once or by the deadline.
//   - Nothing of one life is left when the next one begins: its actor has stopped, its
//     tasks have returned, its resources were severed. What was meant for it is dropped.
//   - A panic, Life.Fail, a stop from outside and a panic in a task are one thing: a
//     death. The loss of a connection becomes one when the actor says so.
//   - A failed open and every close report everything that went wrong, as a tree of
//     errors whose leaves are *Failure.
//   - What does not end in time is reported as still running, in the error, as an
//     event, and in the snapshot. It is waited for as long as it takes.
//
// # The states of a child
//
// Every child begins and ends as closed. A death leads to one of the three states
// below, as the Policy of the child says.
//
//	closed ──► opening ──► open ──► draining ──► closing ──► closed
//	              │          │          │            │
//	              └────┬─────┘          └─────┬──────┘
//	                 died                   died
//	                   │                      └──► closed, and the close reports it
//	                   ├──► restarting ──► opening, after a pause
//	                   ├──► failed, which fails the group: Escalate, or too many deaths
//	                   └──► closed for good: Never
//
// # Reading order
//
// First what is declared: spec.go, and options.go for the tree as a whole. Then who
// uses it: tree.go (from Start to Close), life.go (an actor and its one life), ref.go
// and ask.go (how others reach it). Then how it is done: group.go, lane.go and
// restart.go (many children, and what a death causes), leaf.go and shell.go (one
// child over its lives), mailbox.go and address.go (what becomes of a message),
// close.go, fence.go, custody.go (what has really ended). The rest is one topic a file.
//
// # What a host can rely on
//
// The actor system may be anybody's. Its configuration, guardians and event stream are
// not touched. The library's dead-letter log prints messages with their contents;
// since it is the host's, the kit makes sure that it never gets to see any: every
// address stays registered as long as anybody may hold it (those of removed children
// for the last thousand, those of a closed tree for as long as the system lives, a few
// hundred bytes each), and what actors send to a PID that does not exist reaches the
// dead letters as an Undelivered, which has only its type. What the host's own actors
// send to PIDs that are not the kit's is the host's.
//
// Inside Receive the actor.Context differs from the library's in a few points: Self is
// the address of this life alone (use Life.Self for the lasting one), Parent is nil,
// Respond answers once, and Stash, which would lose messages, is a panic.
package supervisor
