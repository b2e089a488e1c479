package supervisor

import (
	"context"
	"fmt"
)

// closeFlight is one close that all who call Close meanwhile share.
type closeFlight struct {
	done chan struct{}
	err  error // set before done is closed
}

// Close ends the tree in the declared order. The deadline of ctx is divided over the
// stages. Whoever calls it while it runs waits for the same close and gets its
// result, or gives up waiting with their own ctx. The error lists everything that
// failed; what did not close is left open, and Close called again closes that and
// nothing else. A tree that is closed returns nil.
//
// When everything has closed, Close waits for what custody still lists, and reports
// what of it has not ended by the deadline.
//
// While Start runs only the end of its context calls it off: Close is ErrNotApplicable.
func (t *Tree) Close(ctx context.Context) error {
	t.mu.Lock()
	if !t.open {
		t.mu.Unlock()
		return refusal(t.top.path, ErrNotApplicable)
	}
	f, mine := t.flight, false
	if f == nil {
		f, mine = &closeFlight{done: make(chan struct{})}, true
		t.flight = f
	}
	t.mu.Unlock()
	if mine {
		f.err = t.shut(ctx)
		t.mu.Lock()
		t.flight = nil
		t.mu.Unlock()
		close(f.done)
		return f.err
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w: %w", t.top.path, ErrStillRunning, ctx.Err())
	}
}

// Closed is closed when the tree has closed and every resource ever held has ended.
func (t *Tree) Closed() <-chan struct{} { return t.custody.Complete() }

func (t *Tree) shut(ctx context.Context) error {
	done, err := t.crown.close(ctx, Shutdown, nil)
	if !done {
		return err
	}
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	t.mu.Unlock()
	if first {
		t.retire()
	}
	return gather("close "+t.top.path, []error{err, t.awaitCustody(ctx)})
}

// awaitCustody reports what did not end.
func (t *Tree) awaitCustody(ctx context.Context) error {
	timer := t.set.clock.NewTimer(DefaultCloseWithin)
	defer timer.Stop()
	select {
	case <-t.custody.Complete():
		return nil
	case <-ctx.Done():
	case <-timer.C():
	}
	var errs []error
	for _, h := range t.custody.Open() {
		path := h.Path
		if path == "" {
			path = t.top.path
		}
		errs = append(errs, &Failure{Path: path, Label: h.Label, Phase: PhaseClose, Cause: ErrStillRunning})
	}
	return gather("resources of "+t.top.path, errs)
}
