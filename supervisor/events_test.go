package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/cotal-ai/authplane/supervisor"
)

func TestSlowSubscriberLosesTheOldestAndIsTold(t *testing.T) {
	p := &probe{}
	tree := start(t, group("root", p.spec("a")))
	slow, fast := tree.Events(3), tree.Events(1000)
	defer slow.Close()
	defer fast.Close()
	for i := range 10 {
		must2(p.current(), p.current().Hold(newWire(fmt.Sprint(i))))
	}
	m, ok := must2(slow.Next(within(t))).(Missed)
	if !ok || m.Count != 7 {
		t.Fatalf("%v", m)
	}
	for i := range 3 {
		if e := must2(slow.Next(within(t))).(ResourceHeld); e.Label != fmt.Sprint(7+i) {
			t.Fatal(e)
		}
	}
	for i := range 10 {
		if e := must2(fast.Next(within(t))).(ResourceHeld); e.Label != fmt.Sprint(i) {
			t.Fatal(e)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := slow.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	slow.Close()
	slow.Close()
	if _, err := slow.Next(within(t)); !errors.Is(err, ErrUnsubscribed) {
		t.Fatal(err)
	}
}

func TestEventsReadWell(t *testing.T) {
	o := Origin{Path: "plane/claim", Generation: 3, At: time.Unix(0, 0)}
	for want, e := range map[string]Event{
		"plane/claim$3 opening":                            Opening{o},
		"plane/claim$3 open after 1s":                      Opened{o, time.Second},
		"plane/claim$3 died: boom":                         Died{o, errBoom},
		"plane/claim$3 restarting in 1s (restart 2): boom": Restarting{o, errBoom, time.Second, 2},
		"plane$1 fenced by plane/claim: boom":              Fenced{Origin{Path: "plane", Generation: 1}, "plane/claim", errBoom},
		"plane/claim$3 healed after 1s":                    Healed{o, errBoom, time.Second},
		"plane/claim$3 draining":                           Draining{o},
		"plane/claim$3 drained: boom":                      Drained{o, errBoom},
		"plane/claim$3 closing (fencing)":                  Closing{o, Fencing},
		"plane/claim$3 closed":                             Closed{o, nil},
		"plane/claim$3 refused to close: boom":             CloseRefused{o, errBoom},
		"plane/claim$3 still running: receive, task x":     StillRunning{o, []string{"receive", "task x"}},
		"plane/claim rejected 2 message(s): unavailable":   RejectedMessage{Origin{Path: "plane/claim"}, 2, ErrUnavailable},
		"plane/claim$3 holds wire":                         ResourceHeld{o, "wire"},
		"plane/claim$3: wire ended":                        ResourceEnded{o, "wire"},
		"plane/claim$3 added":                              Added{o},
		"plane/claim$3 removed":                            Removed{o},
		"plane/claim$3 failed: boom":                       Failed{o, errBoom},
		"4 event(s) missed":                                Missed{Count: 4},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	both := Outage(fmt.Errorf("x: %w", Terminal(errBoom)))
	if !IsOutage(both) || !IsTerminal(both) || !errors.Is(both, errBoom) || both.Error() != "x: boom" {
		t.Error(both)
	}
	for _, err := range []error{nil, errBoom, fmt.Errorf("%w and %w", errBoom, ErrLate)} {
		if IsOutage(err) || IsTerminal(err) {
			t.Error(err)
		}
	}
	if Outage(nil) != nil || Terminal(nil) != nil {
		t.Error("nil is marked")
	}
	if !IsOutage(fmt.Errorf("%w and %w", errBoom, Outage(ErrLate))) {
		t.Error("not found among several")
	}
	if !errors.Is(ErrClosing, ErrUnavailable) || errors.Is(ErrOverloaded, ErrUnavailable) {
		t.Error("kinds")
	}
	secret := struct{ secret string }{"hunter2"}
	if got := (&PanicError{Value: secret, Where: "receive"}).Error(); got != "panic in receive with a struct { secret string }" {
		t.Error(got)
	}
	all := &Failures{Doing: "close x", List: []error{
		&Failure{Path: "a", Phase: PhaseClose, Cause: errBoom},
		&Failures{Doing: "close g", List: []error{&Failure{Path: "g/b", Label: "w", Phase: PhaseDrain, Cause: ErrLate}, ErrStopped}},
	}}
	if want := "close x:\n  close a: boom\n  close g:\n    drain g/b (w): not open in time\n    stopped from outside"; all.Error() != want {
		t.Error(all)
	}
	if !errors.Is(all, ErrLate) || !errors.Is(all, ErrStopped) || len(Leaves(all)) != 2 {
		t.Error("leaves are lost")
	}
	var f *Failure
	if !errors.As(all, &f) || f.Path != "a" {
		t.Error(f)
	}
}

func TestSnapshotOfARestartingChild(t *testing.T) {
	clock := newClock()
	p := &probe{}
	s := p.spec("a")
	s.Label = "fixed"
	tree := start(t, group("root", s), WithClock(clock), WithRandom(func() float64 { return 1 }))
	p.open = func(l *Life) { l.Fail(errBoom) }
	p.current().Fail(errBoom)
	clock.timer(t, 50*time.Millisecond)
	n := node(t, tree, "a")
	if n.State != StateRestarting || n.Generation != 2 || n.Restarts != 2 || !errors.Is(n.LastError, errBoom) || n.Label != "fixed" || n.Since.IsZero() {
		t.Fatalf("%+v", n)
	}
	if _, err := tree.Kill("a", Panic); !errors.Is(err, ErrNotApplicable) {
		t.Fatal(err)
	}
}
