//go:build !race

package stream_test

// crowd is far more than the server takes at once.
const crowd = 1000
