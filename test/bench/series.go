package bench

import (
	"math"
	"slices"
	"time"
)

// Series is one figure, measured some times.
type Series []float64

// One is a figure that was measured once.
func One(v float64) Series { return Series{v} }

// Milliseconds is a series of durations.
func Milliseconds(took []time.Duration) Series {
	s := make(Series, 0, len(took))
	for _, d := range took {
		s = append(s, float64(d)/float64(time.Millisecond))
	}
	return s
}

// Median is the middle one, or the middle of the middle two; NaN of none.
func (s Series) Median() float64 {
	sorted := s.sorted()
	switch n := len(sorted); {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// Percentile is the smallest value that p percent do not exceed; NaN of none.
func (s Series) Percentile(p float64) float64 {
	sorted := s.sorted()
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// Min and Max are the ends; NaN of none.
func (s Series) Min() float64 { return s.Percentile(0) }

// Max is the largest.
func (s Series) Max() float64 { return s.Percentile(100) }

// Over divides turn by turn: the i-th of s by the i-th of t.
func (s Series) Over(t Series) Series {
	ratios := make(Series, 0, len(s))
	for i := range s {
		ratios = append(ratios, s[i]/t[i])
	}
	return ratios
}

// Minus subtracts turn by turn.
func (s Series) Minus(t Series) Series {
	left := make(Series, 0, len(s))
	for i := range s {
		left = append(left, s[i]-t[i])
	}
	return left
}

func (s Series) sorted() Series {
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	return sorted
}
