// Package names holds the grammars of everything that is named: spaces, owners,
// actors, incarnations, credentials. Whatever comes from outside passes through
// here before it stands in a key, a subject or a path. It knows no broker and no
// actor.
package names
