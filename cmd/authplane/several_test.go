package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/life"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// patience bounds every wait. It is only ever reached by a failure.
const patience = 30 * time.Second

// player is a service that does what a test wants.
type player struct {
	name           string
	closed, failed chan struct{}
	cause          error
	closing        func() error // nil for one that closes at once
}

func newPlayer(name string) *player {
	return &player{name: name, closed: make(chan struct{}), failed: make(chan struct{})}
}

func (p *player) Close(context.Context) error {
	defer close(p.closed)
	if p.closing == nil {
		return nil
	}
	return p.closing()
}
func (p *player) Closed() <-chan struct{} { return p.closed }
func (p *player) Failed() <-chan struct{} { return p.failed }
func (p *player) Err() error              { return p.cause }
func (p *player) Status() messages.Status { return messages.Status{State: messages.SpaceReady} }
func (p *player) Record() service.Record  { return service.Record{Space: p.name} }
func (p *player) Connections() []messages.Connection {
	return []messages.Connection{{Label: "of " + p.name, Ended: true}}
}

// fail has the service give up.
func (p *player) fail(cause error) {
	p.cause = cause
	close(p.failed)
}

// stage keeps several services and listens to what is written.
type stage struct {
	*testing.T
	app     *app
	lines   chan string // 16: more than any test writes
	signals chan os.Signal
	log     *locked
	lives   chan []lived // 1
}

// locked is a text that several write, and that can be waited for.
type locked struct {
	mu    sync.Mutex
	text  bytes.Buffer
	spoke chan struct{} // 1: set when something was written since it was taken
}

func newLocked() *locked { return &locked{spoke: make(chan struct{}, 1)} }

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.spoke <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until a text was written.
func (l *locked) await(t *testing.T, text string) {
	t.Helper()
	for late := time.After(patience); !strings.Contains(l.String(), text); {
		select {
		case <-l.spoke:
		case <-late:
			t.Fatalf("%q was not written:\n%s", text, l)
		}
	}
}

type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) { w <- string(b); return len(b), nil }

func newStage(t *testing.T) *stage {
	s := &stage{T: t, lines: make(chan string, 16), signals: make(chan os.Signal, 2), log: newLocked(), lives: make(chan []lived, 1)}
	s.app = &app{out: lineWriter(s.lines), err: s.log, getenv: func(string) string { return "" }, json: true}
	return s
}

func (s *stage) keep(list []kept) {
	go func() { s.lives <- s.app.together(context.Background(), list, s.signals, life.NewManager()) }() // ends with them
}

// keeping starts to keep services by the names they have among others.
func keeping(t *testing.T, starts map[string]starter) *stage {
	s := newStage(t)
	var list []kept
	for _, name := range []string{"alpha", "beta", "gamma"} {
		if start, is := starts[name]; is {
			list = append(list, kept{name: name, start: start, log: slog.New(slog.NewTextHandler(s.log, nil))})
		}
	}
	s.keep(list)
	return s
}

func comes(p *player) starter {
	return func(context.Context) (running, error) { return p, nil }
}

func failsToStart(err error) starter {
	return func(context.Context) (running, error) { return nil, err }
}

// awaits is a start that lasts until it is called off.
func awaits(ctx context.Context) (running, error) { <-ctx.Done(); return nil, ctx.Err() }

// ready waits for the first lines of n services and returns them by their names.
func (s *stage) ready(n int) map[string]service.Record {
	s.Helper()
	found := map[string]service.Record{}
	for range n {
		var r service.Record
		if err := json.Unmarshal([]byte(await(s.T, s.lines, "a first line")), &r); err != nil {
			s.Fatal(err)
		}
		found[r.Space] = r
	}
	return found
}

// end waits until all have ended and returns the last line, if there is one, and what
// the command would fail with.
func (s *stage) end() (*ended, error) {
	s.Helper()
	err := s.app.farewell(await(s.T, s.lives, "the end"))
	select {
	case line := <-s.lines:
		var last ended
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			s.Fatal(err)
		}
		return &last, err
	default:
		return nil, err
	}
}

func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-c:
		return value
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
		panic("not reached")
	}
}

func code(err error) int {
	if err == nil {
		return messages.ExitDone
	}
	return exitCode(&verbError{err})
}

// One does not start, another fails later: whoever is left is served until told
// otherwise, and the exit says what went wrong with whom.
func TestSiblingsGoOn(t *testing.T) {
	alpha, gamma := newPlayer("alpha"), newPlayer("gamma")
	s := keeping(t, map[string]starter{"alpha": comes(alpha), "beta": failsToStart(messages.StateDirTaken.Because("/b")), "gamma": comes(gamma)})
	if got := s.ready(2); got["alpha"].Space == "" || got["gamma"].Space == "" {
		t.Errorf("ready are %v", got)
	}
	gamma.fail(errors.New("budget exhausted"))
	await(t, gamma.closed, "the close of the one that failed")
	s.log.await(t, "no longer served\" space=beta") // its start would be called off otherwise
	select {
	case <-alpha.closed:
		t.Error("the sibling was closed")
	case <-s.lives:
		t.Fatal("all have ended")
	default:
	}
	s.signals <- syscall.SIGTERM
	last, err := s.end()
	want := &ended{true, append(alpha.Connections(), gamma.Connections()...), []string{
		"beta: " + messages.StateDirTaken.Because("/b").Error(), "gamma: budget exhausted"}}
	if !reflect.DeepEqual(last, want) || code(err) != messages.ExitFailed || !strings.Contains(err.Error(), "space gamma failed: budget exhausted") {
		t.Errorf("exit %d, %v and %+v", code(err), err, last)
	}
	for _, said := range []string{"a space has failed and closes; the others go on\" space=gamma", "no longer served\" space=beta", "no longer served\" space=gamma", "closing space alpha"} {
		if !strings.Contains(s.log.String(), said) {
			t.Errorf("%q is not in:\n%s", said, s.log)
		}
	}
}

func TestOneThatWaitsHoldsNobodyUp(t *testing.T) {
	alpha := newPlayer("alpha")
	s := keeping(t, map[string]starter{"alpha": comes(alpha), "beta": awaits})
	s.ready(1)
	s.signals <- syscall.SIGTERM
	last, err := s.end()
	if want := (&ended{true, alpha.Connections(), []string{}}); err != nil || !reflect.DeepEqual(last, want) {
		t.Errorf("%v and %+v", err, last)
	}
}

// All close at once, each with its own error.
func TestASignalClosesAllAtOnce(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	alpha, beta := newPlayer("alpha"), newPlayer("beta")
	alpha.closing = func() error { both.Done(); both.Wait(); return nil }
	beta.closing = func() error { both.Done(); both.Wait(); return errors.New("refused") }
	s := keeping(t, map[string]starter{"alpha": comes(alpha), "beta": comes(beta)})
	s.ready(2)
	s.signals <- syscall.SIGTERM
	last, err := s.end()
	want := &ended{true, append(alpha.Connections(), beta.Connections()...), []string{"beta: refused"}}
	if !reflect.DeepEqual(last, want) || code(err) != messages.ExitFailed || err.Error() != "space beta: refused" {
		t.Errorf("exit %d, %v and %+v", code(err), err, last)
	}
}

func TestTheProcessEndsWithTheLast(t *testing.T) {
	alpha, beta := newPlayer("alpha"), newPlayer("beta")
	s := keeping(t, map[string]starter{"alpha": comes(alpha), "beta": comes(beta)})
	s.ready(2)
	alpha.fail(errors.New("one"))
	await(t, alpha.closed, "the close of the first")
	beta.fail(errors.New("two"))
	last, err := s.end()
	if want := []string{"alpha: one", "beta: two"}; last == nil || !reflect.DeepEqual(last.Errors, want) || code(err) != messages.ExitFailed {
		t.Errorf("exit %d and %+v", code(err), last)
	}
}

// Where none comes up there are no lines, and the error is that of the starts.
func TestNoneOfSeveralStarts(t *testing.T) {
	s := keeping(t, map[string]starter{"alpha": failsToStart(messages.StateDirTaken.Because("/a")), "beta": failsToStart(messages.StateDirTaken.Because("/b"))})
	last, err := s.end()
	if last != nil || code(err) != messages.ExitRefused || !strings.Contains(err.Error(), "/a") || !strings.Contains(err.Error(), "/b") {
		t.Errorf("exit %d, %v and %+v", code(err), err, last)
	}
}

// A start that does not unwind is left at the second signal, and held against its
// space alone.
func TestAStartThatHangsIsLeft(t *testing.T) {
	alpha, release := newPlayer("alpha"), make(chan struct{})
	defer close(release)
	s := keeping(t, map[string]starter{"alpha": comes(alpha), "beta": func(context.Context) (running, error) { <-release; return nil, nil }})
	s.ready(1)
	s.signals <- syscall.SIGTERM
	await(t, alpha.closed, "the close of the one that can")
	s.signals <- syscall.SIGTERM
	last, err := s.end()
	want := &ended{false, alpha.Connections(), []string{"beta: start: " + life.ErrLate.Error()}}
	if !errors.Is(err, life.ErrLate) || code(err) != messages.ExitFailed || !reflect.DeepEqual(last, want) {
		t.Errorf("exit %d, %v and %+v", code(err), err, last)
	}
}
