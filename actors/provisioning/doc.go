// Package provisioning makes what machines need when they are enrolled, and removes it
// when they have ended.
//
// What an enrolment does is package footprint; here is where it is done. Making and
// removing are calls with an actor and a connection of their own, in the account of the
// principals; see package operations. The ledger is asked through the plane's writer and
// reader. The sweeper is an actor of the space: while this process holds the plane it
// settles, in the background, what was interrupted and what has ended.
package provisioning
