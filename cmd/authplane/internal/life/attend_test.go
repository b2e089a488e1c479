package life

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// double is a service whose close does what a test wants.
type double struct {
	closed, failed chan struct{}
	cause          error
	closing        func(ctx context.Context, attempt int) error

	mu       sync.Mutex
	attempts int
}

func newDouble(closing func(context.Context, int) error) *double {
	return &double{closed: make(chan struct{}), failed: make(chan struct{}), closing: closing}
}

func (d *double) Close(ctx context.Context) error {
	d.mu.Lock()
	d.attempts++
	attempt := d.attempts
	d.mu.Unlock()
	if d.closing == nil {
		close(d.closed)
		return nil
	}
	return d.closing(ctx, attempt)
}
func (d *double) Closed() <-chan struct{} { return d.closed }
func (d *double) Failed() <-chan struct{} { return d.failed }
func (d *double) Err() error              { return d.cause }

// recorder is a manager that remembers what it was told.
type recorder struct {
	mu   sync.Mutex
	told []string
	news chan struct{} // 64 slots: more than any test tells
}

func newRecorder() *recorder { return &recorder{news: make(chan struct{}, 64)} }

func (r *recorder) manager(every time.Duration) Manager {
	return Manager{every: every, tell: func(state string) {
		r.mu.Lock()
		r.told = append(r.told, state)
		r.mu.Unlock()
		r.news <- struct{}{}
	}}
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

func signals(n int) chan os.Signal {
	c := make(chan os.Signal, 2)
	for range n {
		c <- syscall.SIGTERM
	}
	return c
}

func TestASignalClosesAndTheManagerIsTold(t *testing.T) {
	r := newRecorder()
	ending := Attendant{Signals: signals(1), Manager: r.manager(0)}.Attend(newDouble(nil))
	if ending.Cause != nil || ending.Err != nil || !ending.Closed {
		t.Errorf("got %+v", ending)
	}
	want := []string{"READY=1", "STOPPING=1", "EXTEND_TIMEOUT_USEC=20000000"}
	if got := r.all(); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestAFailedServiceIsClosedAndTheCauseKept(t *testing.T) {
	d := newDouble(nil)
	d.cause = errors.New("budget exhausted")
	close(d.failed)
	ending := Attendant{Signals: signals(0), Manager: newRecorder().manager(0)}.Attend(d)
	if !errors.Is(ending.Cause, d.cause) || !ending.Closed {
		t.Errorf("got %+v", ending)
	}
}

func TestACloseThatFailedHalfwayIsTriedAgain(t *testing.T) {
	var d *double
	d = newDouble(func(_ context.Context, attempt int) error {
		if attempt < 3 {
			return errors.New("broker away")
		}
		close(d.closed)
		return nil
	})
	ending := Attendant{Signals: signals(1), Manager: newRecorder().manager(0)}.Attend(d)
	if ending.Err != nil || !ending.Closed || d.attempts != 3 {
		t.Errorf("got %+v after %d attempts", ending, d.attempts)
	}
}

func TestATerminalRefusalOutlivesTheRetry(t *testing.T) {
	refused := errors.New("refused for good")
	passing := errors.New("broker away")
	var d *double
	d = newDouble(func(_ context.Context, attempt int) error {
		if attempt == 1 {
			return &supervisor.Failures{List: []error{
				&supervisor.Failure{Path: "claim", Cause: supervisor.Terminal(refused)},
				&supervisor.Failure{Path: "reader", Cause: passing},
			}}
		}
		close(d.closed)
		return nil
	})
	ending := Attendant{Signals: signals(1), Manager: newRecorder().manager(0)}.Attend(d)
	if !errors.Is(ending.Err, refused) || errors.Is(ending.Err, passing) || !ending.Closed {
		t.Errorf("got %+v", ending)
	}
}

func TestACloseThatEndedWithAnErrorIsNotTriedAgain(t *testing.T) {
	refused := errors.New("refused for good")
	var d *double
	d = newDouble(func(context.Context, int) error { close(d.closed); return refused })
	ending := Attendant{Signals: signals(1), Manager: newRecorder().manager(0)}.Attend(d)
	if !errors.Is(ending.Err, refused) || !ending.Closed || d.attempts != 1 {
		t.Errorf("got %+v after %d attempts", ending, d.attempts)
	}
}

func TestThePastDeadlineIsReported(t *testing.T) {
	still := errors.New("plane/writer still running")
	d := newDouble(func(ctx context.Context, _ int) error { <-ctx.Done(); return still })
	ending := Attendant{Signals: signals(1), Manager: newRecorder().manager(0), Grace: 20 * time.Millisecond}.Attend(d)
	if !errors.Is(ending.Err, ErrLate) || !errors.Is(ending.Err, still) || ending.Closed {
		t.Errorf("got %+v", ending)
	}
}

func TestACloseThatNeverAnswersIsLeft(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	d := newDouble(func(context.Context, int) error { <-release; return nil })
	ending := Attendant{Signals: signals(1), Manager: newRecorder().manager(0), Grace: 20 * time.Millisecond}.Attend(d)
	if !errors.Is(ending.Err, ErrLate) || ending.Closed {
		t.Errorf("got %+v", ending)
	}
}

func TestASecondSignalHurries(t *testing.T) {
	d := newDouble(func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
	began := time.Now()
	ending := Attendant{
		Signals: signals(2), Manager: newRecorder().manager(0),
		Grace: time.Hour, Hurry: 20 * time.Millisecond,
	}.Attend(d)
	if !errors.Is(ending.Err, ErrLate) {
		t.Errorf("got %+v", ending)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestSignsOfLifeDependOnTheService(t *testing.T) {
	for _, well := range []bool{true, false} {
		r, asked, c := newRecorder(), make(chan struct{}, 64), signals(0)
		done := make(chan Ending, 1)
		go func() {
			done <- Attendant{
				Signals: c, Manager: r.manager(time.Millisecond),
				Well: func() bool { asked <- struct{}{}; return well },
			}.Attend(newDouble(nil))
		}()
		for range 3 {
			<-asked
		}
		c <- syscall.SIGTERM
		<-done
		if got := slices.Contains(r.all(), "WATCHDOG=1"); got != well {
			t.Errorf("well %v: sign of life %v", well, got)
		}
	}
}

func TestTheManagerOfTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "3000000")
	t.Setenv("WATCHDOG_PID", "")
	os.Unsetenv("WATCHDOG_PID")

	m := NewManager()
	if m.every != 1500*time.Millisecond {
		t.Errorf("a sign of life every %s", m.every)
	}
	m.Ready()
	buffer := make([]byte, 256)
	n, err := socket.Read(buffer)
	if err != nil || !strings.Contains(string(buffer[:n]), "READY=1") {
		t.Errorf("got %q, %v", buffer[:n], err)
	}
}
