//go:build unix

package connect_test

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkRatio reports what a decision costs as a multiple of its cryptographic
// steps. Both are measured in the processor time of the process, what is spent on
// garbage included, and in turns: so what else the machine does disturbs neither.
func BenchmarkRatio(b *testing.B) {
	const turn = 100
	d := newDecision(b)
	p := newPrimitives(b, d)
	var decisions, steps time.Duration
	for b.Loop() {
		start := processorTime(b)
		for range turn {
			d.make(b)
		}
		between := processorTime(b)
		for range turn {
			p.run(b)
		}
		decisions, steps = decisions+between-start, steps+processorTime(b)-between
	}
	b.ReportMetric(float64(decisions)/float64(steps), "ratio")
	b.ReportMetric(float64(decisions.Microseconds())/float64(turn*b.N), "µs/decision")
	b.ReportMetric(0, "ns/op") // one op is a turn of each
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
