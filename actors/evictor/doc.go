// Package evictor is the actor that has servers drop connections. It holds one
// connection to the system account that may do that and nothing else: it cannot
// even see whether anybody is gone, which is the observer's to tell.
package evictor
