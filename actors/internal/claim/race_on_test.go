//go:build race

package claim_test

// defaultHistories under the race detector, which makes each eight times dearer.
const defaultHistories = 3_000
