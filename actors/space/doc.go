// Package space is the front door: Start opens one space, the authority of one
// tenant's NATS accounts, as a tree of supervised actors in an actor system of the
// caller's.
//
// It installs no signal handler, never exits the process, prints nothing and
// writes nothing outside its state directory. Several spaces may stand in one
// process; each has its own tree, accounts and keys, and none touches another.
//
// children.go is the whole composition on one screen.
package space
