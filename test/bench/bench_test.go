package bench

import (
	"fmt"
	"os"
	"testing"
)

// print shows a report once, however often the benchmark was repeated for its time.
func print(b *testing.B, r *Report) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // says nothing here
	_, err := fmt.Fprint(os.Stdout, r)
	must(b, err)
}

func BenchmarkConnects(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureConnects(b, 5, 1000)
	}
	print(b, r)
}

func BenchmarkDecisions(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureDecisions(b, "1s")
	}
	print(b, r)
}

func BenchmarkStorm(b *testing.B) {
	for _, n := range []int{1000, 2000, 3000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var r *Report
			for b.Loop() {
				r = measureStorm(b, n)
			}
			print(b, r)
		})
	}
}

func BenchmarkFirstExchanges(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureExchanges(b, 1000)
	}
	print(b, r)
}

func BenchmarkRevoke(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureRevoke(b, 100)
	}
	print(b, r)
}

func BenchmarkRetire(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureRetire(b, 20, 1, 5, 1000)
	}
	print(b, r)
}

func BenchmarkOperations(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureOperations(b, 256)
	}
	print(b, r)
}

func BenchmarkAsk(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureAsk(b, 7, 20_000)
	}
	print(b, r)
}

func BenchmarkLife(b *testing.B) {
	var r *Report
	for b.Loop() {
		r = measureLife(b, 7)
	}
	print(b, r)
}

// TestSmoke runs everything but the benchmarks of other packages, in small.
func TestSmoke(t *testing.T) {
	for name, measure := range map[string]func() *Report{
		"connects":   func() *Report { return measureConnects(t, 1, 16) },
		"storm":      func() *Report { return measureStorm(t, 16) },
		"exchanges":  func() *Report { return measureExchanges(t, 8) },
		"revoke":     func() *Report { return measureRevoke(t, 2) },
		"retire":     func() *Report { return measureRetire(t, 2, 1, 5) },
		"operations": func() *Report { return measureOperations(t, 4) },
		"ask":        func() *Report { return measureAsk(t, 1, 100) },
		"life":       func() *Report { return measureLife(t, 1) },
	} {
		r := measure()
		t.Log(r)
		if len(r.ratios)+len(r.figures) < 2 {
			t.Errorf("%s: nothing was found:%s", name, r)
		}
	}
}
