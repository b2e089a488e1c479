package stream

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// shared lets callers share reads of one key. Per key one read is under way, which
// nobody may join any more, and at most one waits to begin, which everybody joins
// who comes meanwhile. So nobody gets an answer that was read before he asked. Who
// finds nobody reading reads by himself, and for himself alone.
type shared struct {
	mu      sync.Mutex
	ctx     context.Context // of whoever runs the reads; nil when nobody does
	lines   map[string]*line
	reading sync.WaitGroup // every read under way
}

// line is what goes on about one key.
type line struct{ waiting *flight }

// flight is one read for those who wait, and its answer, which stands once done is
// closed.
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
	f, running, err := s.join(key)
	switch {
	case err != nil:
		return ledger.Row{}, false, err
	case f == nil:
		return s.readAlone(ctx, running, key, read)
	}
	select {
	case <-f.done:
		return f.row, f.found, f.err
	case <-ctx.Done():
		return ledger.Row{}, false, messages.Unproved.From(ctx.Err())
	}
}

// join finds the read that begins after now. Without one the caller is to read by
// himself, for as long as running lasts.
func (s *shared) join(key string) (f *flight, running context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		return nil, nil, messages.Unproved.From(errIdle)
	}
	l, busy := s.lines[key]
	if !busy {
		s.lines[key] = &line{}
		s.reading.Add(1)
		return nil, s.ctx, nil
	}
	if l.waiting == nil {
		l.waiting = &flight{done: make(chan struct{})}
	}
	return l.waiting, nil, nil
}

// readAlone reads on the caller's goroutine, and then leaves whoever came meanwhile
// to one of their own.
func (s *shared) readAlone(ctx, running context.Context, key string, read readFunc) (ledger.Row, bool, error) {
	defer s.reading.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(running, cancel)()
	defer func() { // also when read panics
		if f := s.next(key); f != nil {
			s.reading.Go(func() { s.serve(running, key, f, read) })
		}
	}()
	return read(ctx, key)
}

// serve reads until nobody waits for the key.
func (s *shared) serve(running context.Context, key string, f *flight, read readFunc) {
	for ; f != nil; f = s.next(key) {
		f.row, f.found, f.err = read(running, key)
		close(f.done)
	}
}

// next is the read that begins now, which nobody joins any more.
func (s *shared) next(key string) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	f := l.waiting
	l.waiting = nil
	if f == nil {
		delete(s.lines, key)
	}
	return f
}
