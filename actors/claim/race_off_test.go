//go:build !race

package claim_test

// rounds is how often ten openers race.
const rounds = 1000
