package face

import (
	"sync"
	"time"
)

// maxRefusalLines is how many refusals of one kind a face logs in one second. The
// metrics count them all.
const maxRefusalLines = 10

// lines bounds the lines of one kind in the log, second by second.
type lines struct {
	now func() time.Time

	mu         sync.Mutex
	began      time.Time
	written    int
	suppressed int
}

func newLines(now func() time.Time) *lines { return &lines{now: now} }

// admit reports whether one more line may be written, and how many were suppressed
// since the last one that was.
func (l *lines) admit() (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if since := now.Sub(l.began); since >= time.Second || since < 0 {
		l.began, l.written = now, 0
	}
	if l.written == maxRefusalLines {
		l.suppressed++
		return 0, false
	}
	l.written++
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
