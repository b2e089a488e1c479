package retirement

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Pauses between two tries of an operation that failed.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 15 * time.Second
)

// books are what the desk knows of the operations that are owed: no more than what
// their actors told, so that it may be forgotten at any time. They are safe for
// concurrent use.
type books struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*entry
	// finished are retirements that were asked for and are done: of those who ask some
	// died before they could take it back.
	finished map[string]bool
	watchers map[string][]chan struct{} // by operation; closed at its end
	said     string                     // the trouble that was logged last
}

// entry is one operation.
type entry struct {
	progress messages.OperationProgress
	attempts int // tries of this step, by actors of this process
	retryAt  time.Time
}

func newBooks(now func() time.Time) *books {
	return &books{now: now, entries: map[string]*entry{}, finished: map[string]bool{}, watchers: map[string][]chan struct{}{}}
}

// of is the entry of an operation, made if need be. It needs the lock.
func (b *books) of(id string) *entry {
	e := b.entries[id]
	if e == nil {
		e = &entry{}
		b.entries[id] = e
	}
	return e
}

// due reports whether an operation may be tried now.
func (b *books) due(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.of(id).retryAt.After(b.now())
}

// started notes one more try. Until its actor tells how it ended the next may come
// only after a pause, so that one which dies at once is not tried all the time.
func (b *books) started(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.of(id)
	e.attempts++
	e.retryAt = b.now().Add(pause(e.attempts))
}

// pause grows with the tries of one step.
func pause(attempts int) time.Duration {
	return min(firstPause<<min(attempts-1, 10), mostPause)
}

// tell takes what an operation's actor says. A step that was made starts the count of
// tries anew; until it is made, the last reason why it was not stands, also while it is
// tried again.
func (b *books) tell(p messages.OperationProgress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.of(p.ID)
	if e.progress.Step != p.Step {
		e.attempts = min(e.attempts, 1)
	} else if p.WaitingFor == "" {
		p.WaitingFor, p.Next = e.progress.WaitingFor, e.progress.Next
	}
	p.Attempt = e.attempts
	e.progress = p
}

// ended takes how an operation's actor ended.
func (b *books) ended(op messages.Operation, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.of(op.ID)
	e.progress.ID = op.ID
	if op.Kind != "" {
		e.progress.Operation = op
	}
	e.progress.Doing, e.progress.Done, e.progress.Total = "", 0, 0
	e.progress.WaitingFor, e.progress.Next, e.progress.RetryAt = "", "", time.Time{}
	if err == nil {
		for _, w := range b.watchers[op.ID] {
			close(w)
		}
		delete(b.watchers, op.ID)
		delete(b.entries, op.ID)
		return
	}
	e.retryAt = b.now().Add(pause(max(e.attempts, 1)))
	e.progress.WaitingFor, e.progress.Next = err.Error(), nextOf(err, e.progress.Principal)
	e.progress.RetryAt, e.progress.Attempt = e.retryAt, e.attempts
}

// nextOf is the command that leads on from a failure: the one for this case where it
// knows one, since an entry of the catalogue names no server.
func nextOf(err error, p messages.Principal) string {
	var why interface{ Next() string }
	if errors.As(err, &why) {
		return why.Next()
	}
	return messages.Describe(err).NextFor(p)
}

// show puts what is known here over what is recorded.
func (b *books) show(op messages.Operation) messages.OperationProgress {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[op.ID]
	if e == nil {
		return messages.OperationProgress{Operation: op}
	}
	p := e.progress
	p.Operation = op // the record is never behind
	return p
}

// watch returns a channel that is closed when an operation ends here; leave stops
// watching.
func (b *books) watch(id string) (over <-chan struct{}, leave func()) {
	w := make(chan struct{}) // closed once, carries no value
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[id] = append(b.watchers[id], w)
	return w, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		rest := slices.DeleteFunc(b.watchers[id], func(other chan struct{}) bool { return other == w })
		if b.watchers[id] = rest; len(rest) == 0 {
			delete(b.watchers, id)
		}
	}
}

// here reports whether an operation runs in this process.
func (b *books) here(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[id] != nil
}

// finish notes a retirement that was asked for and is done.
func (b *books) finish(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished[id] = true
}

func (b *books) isFinished(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finished[id]
}

// keep forgets every operation that is not owed any more: whoever ran it may have
// learnt of its end by a failure, as that of a takeover which a retirement superseded.
func (b *books) keep(owed []string) {
	stands := make(map[string]bool, len(owed))
	for _, id := range owed {
		stands[id] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.entries, func(id string, _ *entry) bool { return !stands[id] })
}

// closeDown forgets everything: another process may hold the plane.
func (b *books) closeDown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = map[string]*entry{}
}

// troubled are the operations that failed at a step, for an operator. One that only
// takes its time is none of them.
func (b *books) troubled() []messages.OperationProgress {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []messages.OperationProgress
	for _, e := range b.entries {
		if failed := e.attempts > 1 || !e.progress.RetryAt.IsZero(); failed && e.progress.WaitingFor != "" {
			all = append(all, e.progress)
		}
	}
	slices.SortFunc(all, byBegin)
	return all
}

func byBegin(a, b messages.OperationProgress) int { return a.Began.Compare(b.Began) }

// trouble logs what keeps the desk from its work, once until it is another.
func (b *books) trouble(log *slog.Logger, err error) {
	b.mu.Lock()
	again := b.said == err.Error()
	b.said = err.Error()
	b.mu.Unlock()
	if !again {
		log.Warn("operations wait", "error", err, "next", messages.Describe(err).Next)
	}
}
