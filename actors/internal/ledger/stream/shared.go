package stream

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// shared lets callers share reads of one key. Per key one read is under way, which
// nobody may join any more, and at most one waits to begin, which everybody joins
// who comes meanwhile. So nobody gets an answer that was read before he asked.
type shared struct {
	mu      sync.Mutex
	ctx     context.Context // of whoever runs the reads; nil when nobody does
	lines   map[string]*line
	reading sync.WaitGroup
}

// line is what goes on about one key.
type line struct{ waiting *flight }

// flight is one read and its answer, which stands once done is closed.
type flight struct {
	done  chan struct{}
	row   ledger.Row
	found bool
	err   error
}

type readFunc func(ctx context.Context, key string) (ledger.Row, bool, error)

func (s *shared) open(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.lines = ctx, map[string]*line{}
}

// close takes no more callers and waits for the reads under way.
func (s *shared) close() {
	s.mu.Lock()
	s.ctx = nil
	s.mu.Unlock()
	s.reading.Wait()
}

func (s *shared) get(ctx context.Context, key string, read readFunc) (ledger.Row, bool, error) {
	f, err := s.join(key, read)
	if err != nil {
		return ledger.Row{}, false, err
	}
	select {
	case <-f.done:
		return f.row, f.found, f.err
	case <-ctx.Done():
		return ledger.Row{}, false, messages.Unproved.From(ctx.Err())
	}
}

// join finds or makes the read that begins after now.
func (s *shared) join(key string, read readFunc) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		return nil, messages.Unproved.From(errIdle)
	}
	l, busy := s.lines[key]
	if !busy {
		l = &line{}
		s.lines[key] = l
		f := &flight{done: make(chan struct{})}
		ctx := s.ctx
		s.reading.Go(func() { s.serve(ctx, key, l, f, read) })
		return f, nil
	}
	if l.waiting == nil {
		l.waiting = &flight{done: make(chan struct{})}
	}
	return l.waiting, nil
}

// serve reads until nobody waits for the key.
func (s *shared) serve(ctx context.Context, key string, l *line, f *flight, read readFunc) {
	for f != nil {
		f.row, f.found, f.err = read(ctx, key)
		close(f.done)
		s.mu.Lock()
		f, l.waiting = l.waiting, nil // it begins now: nobody joins it any more
		if f == nil {
			delete(s.lines, key)
		}
		s.mu.Unlock()
	}
}
