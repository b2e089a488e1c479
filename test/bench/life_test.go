package bench

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
)

// measureLife opens and closes idle spaces, and looks at the memory of one.
func measureLife(t testing.TB, turns int) *Report {
	s := newStage(t)
	var starts, closes []time.Duration
	for range turns + 1 {
		began := time.Now()
		s.open()
		opened := time.Now()
		s.close()
		starts, closes = append(starts, opened.Sub(began)), append(closes, time.Since(opened))
	}
	r := &Report{Title: "a space that opens, idles and closes", How: "The first start also makes the authority stream."}
	r.Figure("first start", Milliseconds(starts[:1]), "ms", Bound{})
	r.Figure("start", Milliseconds(starts[1:]), "ms", Bound{})
	r.Figure("close", Milliseconds(closes[1:]), "ms", Bound{AtMost: 300})

	argument, err := json.Marshal(idleArgument{s.config.NATSURL, s.config.StateDir, s.config.SecretsDir, s.config.SentinelCreds})
	must(t, err)
	var m memory
	spawn(t, "idle", string(argument), &m)
	const mib = 1 << 20
	if m.Resident > 0 {
		r.Figure("memory of a process with one idle space", One(float64(m.Resident)/mib), "MiB", Bound{AtMost: 60})
	}
	r.Figure("of it, live on the heap", One(float64(m.Heap)/mib), "MiB", Bound{})
	r.Figure("goroutines of that process", One(float64(m.Goroutines)), "", Bound{})
	return r
}

type idleArgument struct{ NATSURL, StateDir, SecretsDir, SentinelCreds string }

// memory is what an idle process holds, in bytes; Resident is 0 where the system
// does not tell.
type memory struct {
	Resident, Heap uint64
	Goroutines     int
}

// beIdle opens a space and says what the process holds once it is open.
func beIdle(argument string) error {
	var a idleArgument
	if err := json.Unmarshal([]byte(argument), &a); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	system := newSystem()
	defer system.Shutdown()
	handle, err := space.Start(ctx, system, space.Config{
		Space: "bench", NATSURL: a.NATSURL, StateDir: a.StateDir, SecretsDir: a.SecretsDir, SentinelCreds: a.SentinelCreds,
	})
	if err != nil {
		return err
	}
	held := held()
	if err := ready(held); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	return handle.Close(ctx)
}

func held() memory {
	m := memory{Resident: resident(), Goroutines: runtime.NumGoroutine()}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m.Heap = stats.HeapAlloc
	return m
}

// resident is the resident set, as the kernel tells.
func resident() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}
