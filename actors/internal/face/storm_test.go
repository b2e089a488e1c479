//go:build !race

package face

// storm is how many first exchanges come at once.
const storm = 1000
