// Package rail is what the control rail answers: a service of another account asks
// for the retirement of one incarnation, and learns what was proved.
//
// Who asks is what the server says, never what the request says. Whatever is refused
// was not begun, and whatever was begun goes on whoever waits for it.
//
// What may come in: a small interface and values. What may not: anything that dials
// or subscribes, the supervisor, protoactor.
package rail
