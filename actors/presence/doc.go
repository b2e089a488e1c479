// Package presence is the actor by which the processes of a space watch each
// other. A process that stands still goes on holding its connections: it swallows
// its share of the connects and keeps the plane, for minutes, since to a server it
// merely says nothing. So each says four times a second that it lives and which
// connections it has, on a connection of its own; and who hears itself but not a
// peer has the peer's connections dropped. Who holds the plane is expected to be
// heard, and dropped likewise if it never was. Without a way into the system account
// nobody can be dropped; it is only said then.
//
// Hearing nothing is evidence only for who can be sure to be hearing: the table
// in this room decides by when the own words that came back were sent, since
// whatever a server passed on before them has arrived by then.
package presence
