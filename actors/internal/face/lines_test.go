package face

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// A crowd that is refused, and asks again and again, writes a few lines a second.
func TestRefusalsFillNoLog(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	person := `{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop"}`
	w.rows.inFrontOf(&w.rows.beforeRead, func(context.Context) error { return messages.Unproved })
	before := strings.Count(w.logged(), "\n")
	began := time.Now()
	const asked = 300
	for range asked {
		if a := w.do("POST", w.url+"/exchange", person); a.status != 503 {
			t.Fatalf("got %d", a.status)
		}
		if a := w.do("POST", w.url+"/exchange", `{}`); a.status != 400 {
			t.Fatalf("got %d", a.status)
		}
	}
	seconds := int(time.Since(began)/time.Second) + 2 // a window may be met in its middle
	if n := strings.Count(w.logged(), "\n") - before; n == 0 || n > 2*seconds*maxRefusalLines {
		t.Errorf("%d lines for %d refusals within %d s", n, 2*asked, seconds)
	}
}

func TestSuppressedLinesAreCounted(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := newLines(func() time.Time { return now })
	told := func(n int) (written int, said []int) {
		for range n {
			if suppressed, ok := l.admit(); ok {
				written++
				if suppressed > 0 {
					said = append(said, suppressed)
				}
			}
		}
		return written, said
	}
	for i, step := range []struct {
		pass    time.Duration
		asked   int
		written int
		said    string
	}{
		{0, maxRefusalLines, maxRefusalLines, "[]"},
		{999 * time.Millisecond, 5, 0, "[]"},
		{time.Millisecond, 25, maxRefusalLines, "[5]"},
		{time.Hour, 1, 1, "[15]"},
		{-2 * time.Hour, 1, 1, "[]"}, // a clock that was set back
	} {
		now = now.Add(step.pass)
		if written, said := told(step.asked); written != step.written || fmt.Sprint(said) != step.said {
			t.Errorf("step %d: %d written, which tell of %v", i, written, said)
		}
	}
}
