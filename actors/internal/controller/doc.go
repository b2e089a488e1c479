// Package controller is what a controller gets at its doors: a program without a signing
// key, on a participant's machine, that runs one registered instance. It makes its keys
// itself and shows the public halves; it gets exactly the credentials of its instance,
// and nothing any more once a newer process of the instance has registered.
//
// Each answer follows from the request, from who asks, and from what the ledger holds at
// that moment, in one order of checks. Every credential stands in the ledger, through
// the gate of the instance, before it is signed for anybody.
//
// Reading order: kinds.go (what there is), envelope.go (what is asked), holder.go (who
// may), receipt.go (what proves which registration), doors.go (all of it in order),
// process.go (the same of a process that asks about a run), runs.go (what it asks).
//
// It knows no actor and no connection: a ledger.Store and a signer come in.
package controller
