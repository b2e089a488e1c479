// Package embed shows a space inside somebody else's program, and tests from
// outside that it behaves there as a guest: it installs no signal handler, never
// exits, prints nothing, writes nothing outside its state directory, leaves the
// actor system as it found it, and keeps to itself when a sibling ends.
//
// The program is a process of its own (program_test.go, run by this test binary),
// so that what it prints and how it dies can be seen whole. It uses only what any
// program can import.
package embed
