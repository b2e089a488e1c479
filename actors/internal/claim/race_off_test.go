//go:build !race

package claim_test

// defaultHistories is what a run plays.
const defaultHistories = 10_000
