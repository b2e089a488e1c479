//go:build race

package claim_test

// rounds is how often ten openers race; the race detector makes each slow.
const rounds = 60
