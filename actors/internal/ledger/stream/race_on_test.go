//go:build race

package stream_test

// crowd is small here: the race detector makes the server ten times slower.
const crowd = 200
