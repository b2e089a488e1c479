package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// cost is what processes have used of the processor: this one, and the broker's
// (zero where the system does not tell).
type cost struct{ ours, broker time.Duration }

func (s *stage) cost() cost { return cost{ourTime(s), timeOf(s.broker.cmd.Process.Pid)} }

// since is what was used from an earlier moment on, for each of n, in microseconds.
func (c cost) since(before cost, n int) (ours, broker float64) {
	each := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / float64(n) }
	return each(c.ours - before.ours), each(c.broker - before.broker)
}

func ourTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// tick is the unit of /proc/<pid>/stat, which every Linux of today agrees on.
const tick = 10 * time.Millisecond

func timeOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // what comes before may hold spaces
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return time.Duration(user+system) * tick
}
