package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// decisionBenchmarks are those of the room that decides: nobody outside can make a
// decision without a broker.
const decisionBenchmarks = "./actors/internal/connect"

// measureDecisions relays what the room that decides measures of itself.
func measureDecisions(t testing.TB, benchtime string) *Report {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	cmd := exec.Command("go", "test", "-run", "^$", "-count", "5", "-benchtime", benchtime, "-cpu", "1",
		"-bench", "^Benchmark(Ratio|Decision|Primitives)$", decisionBenchmarks)
	cmd.Dir = filepath.Join(filepath.Dir(here), "..", "..")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	found := parseBenchmarks(string(out))
	r := &Report{
		Title: "decisions of a responder, without the broker and the reads",
		How:   "Unseal, verify twice, decide, mint, sign twice, seal; beside the cryptographic steps alone, with keys kept ready. On one core.",
	}
	r.Ratio("processor time, of that of its cryptographic steps", found["Ratio ratio"], Bound{AtMost: 1.3})
	r.Figure("processor time", found["Ratio µs/decision"], "µs/decision", Bound{})
	var rate Series
	for _, ns := range found["Decision ns/op"] {
		rate = append(rate, 1e9/ns)
	}
	r.Figure("decisions, by the clock", rate, "/s", Bound{})
	r.Figure("allocated", found["Decision B/op"], "B/decision", Bound{})
	return r
}

// parseBenchmarks reads go test's lines into series by "Name unit".
func parseBenchmarks(out string) map[string]Series {
	found := map[string]Series{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-")
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				key := fmt.Sprintf("%s %s", name, fields[i+1])
				found[key] = append(found[key], v)
			}
		}
	}
	return found
}

func TestParseBenchmarks(t *testing.T) {
	found := parseBenchmarks(`goos: linux
BenchmarkDecision 	    4000	    300000 ns/op	   20000 B/op	     250 allocs/op
BenchmarkRatio-2  	      50	       299.5 µs/decision	         1.310 ratio
BenchmarkRatio-2  	      50	       301.5 µs/decision	         1.290 ratio
PASS
`)
	for key, want := range map[string]float64{"Decision ns/op": 300000, "Decision B/op": 20000, "Ratio ratio": 1.3, "Ratio µs/decision": 300.5} {
		if got := found[key].Median(); got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
