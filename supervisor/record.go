package supervisor

import "time"

// A record remembers the deaths of one child, or the fences of one group, and says
// how long to wait before the next attempt and when to give up.
type record struct {
	deaths  []time.Time // those that count, within the window
	attempt int
	opened  time.Time // zero while it is not open
}

// death records one. Counted is false for an outage, which is retried for ever.
func (r *record) death(now time.Time, c RestartConfig, random func() float64, counted bool) (delay time.Duration, exhausted bool) {
	if !r.opened.IsZero() && now.Sub(r.opened) >= c.ResetAfter {
		r.attempt = 0
	}
	r.opened = time.Time{}
	r.attempt++
	if counted {
		kept := r.deaths[:0]
		for _, at := range r.deaths {
			if now.Sub(at) < c.Window {
				kept = append(kept, at)
			}
		}
		r.deaths = append(kept, now)
		exhausted = c.Limit > 0 && len(r.deaths) >= c.Limit
	}
	return r.backoff(c, random), exhausted
}

// backoff is the delay before the current attempt: the first has its own, the others
// are drawn evenly below a limit that doubles.
func (r *record) backoff(c RestartConfig, random func() float64) time.Duration {
	if r.attempt <= 1 {
		return c.First
	}
	limit := c.Base
	for i := 2; i < r.attempt && limit < c.Cap; i++ {
		limit *= 2
	}
	return time.Duration(random() * float64(min(limit, c.Cap)))
}
