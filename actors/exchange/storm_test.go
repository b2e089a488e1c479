//go:build !race

package exchange

// storm is how many first exchanges come at once.
const storm = 1000
