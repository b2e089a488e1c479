//go:build race

package face

// storm is how many first exchanges come at once. The race detector makes each some
// ten times dearer, and would have the test measure the machine.
const storm = 128
