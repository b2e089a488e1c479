// Package faults is the kill table: for each actor, each way to die and each phase of
// a space's life, what happens then. table.go is the promise, the test runs every
// row of it.
//
// After every row, whatever it was: no acknowledged write is lost, nobody is admitted
// who should not be, and at the end of its space no connection is left.
package faults
