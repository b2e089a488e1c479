// Package broker is the one place of the house that dials NATS.
//
// Every connection plays one role of the table in roles.go. Dial mints a user for
// it that may do exactly what the role says, connects, and hands the connection
// to custody before anybody can use it; a connection that custody refuses is
// closed again. Stand keeps a role connected for as long as its owner lives: it
// renews by opening and proving the next connection before it lets go of the old
// one, so that no request fails because a user JWT ran out.
//
// What may come in: roles, and what every role needs of a connection. What may
// not: what is said over the connections. This room knows no row, no request of
// a client and no actor, and nobody else opens a connection.
package broker
