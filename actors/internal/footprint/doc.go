// Package footprint makes and unmakes what a machine needs besides its grant: durable
// consumers and rows in the account of the principals.
//
// What is needed is a template, checked whole when it is configured and written out for
// each incarnation. Making it is a saga with a journal in the ledger: planned, granted,
// provisioned, ready; or compensating, done. Every step is pinned to the one before, so
// that of several processes at the same one each knows where it stands; and whose a
// part is, is written down before the part is made, so that only what was made is ever
// unmade. Whatever is interrupted, Settle finishes or undoes it.
//
// Reading order: template.go, ports.go, saga.go (what leads on), undo.go (what leads
// back), settle.go. The ledger and the broker come in through the ports; no actor is
// known here.
package footprint
