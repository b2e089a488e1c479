package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// holding is a backend whose first batch waits until it is released, and which lets a
// test come between the others. They are counted from 1, that one included.
type holding struct {
	ledger.Backend
	reached, release chan struct{} // closed when the first batch is there, and when it may go

	mu      sync.Mutex
	batches []ledger.Batch
	// before and after may be nil; after says what becomes of the answer.
	before func(n int, b ledger.Batch)
	after  func(n int, last uint64, err error) (uint64, error)
}

func hold(b ledger.Backend) *holding {
	return &holding{Backend: b, reached: make(chan struct{}), release: make(chan struct{})}
}

func (h *holding) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	h.mu.Lock()
	h.batches = append(h.batches, b)
	n := len(h.batches)
	h.mu.Unlock()
	if n == 1 {
		close(h.reached)
		<-h.release
	}
	if h.before != nil {
		h.before(n, b)
	}
	last, err := h.Backend.Send(ctx, b)
	if h.after != nil {
		return h.after(n, last, err)
	}
	return last, err
}

// sizes are the numbers of rows of the batches.
func (h *holding) sizes() (rows []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.batches {
		rows = append(rows, len(b.Writes))
	}
	return rows
}

// noted is a context that says when somebody waits for its end.
type noted struct {
	context.Context
	waits func()
}

func (n noted) Done() <-chan struct{} {
	n.waits()
	return n.Context.Done()
}

// together calls the first while nobody else is there, and all others while the first
// one's batch is on its way: so they travel together. It returns when all are answered.
func (h *holding) together(ctx context.Context, calls ...func(context.Context) error) []error {
	outcomes := make([]error, len(calls))
	var all sync.WaitGroup
	led := make(chan struct{})
	all.Go(func() {
		defer close(led)
		outcomes[0] = calls[0](ctx)
	})
	select {
	case <-h.reached:
	case <-led: // it had nothing to write
	}
	var queued sync.WaitGroup
	for i, call := range calls[1:] {
		queued.Add(1)
		waits := sync.OnceFunc(queued.Done)
		all.Go(func() {
			defer waits()
			outcomes[i+1] = call(noted{ctx, waits})
		})
	}
	queued.Wait()
	close(h.release)
	all.Wait()
	return outcomes
}

// crowd are people of whom a process ends some together.
type crowd struct {
	*holding
	writer *ledger.Writer
	people []living
}

// crowded has n people be born. The first is the one whose end the others wait behind.
func (s *bench) crowded(t *testing.T, ctx context.Context, b ledger.Backend, n int) *crowd {
	t.Helper()
	c := &crowd{holding: hold(b)}
	c.writer = ledger.NewWriter(ledger.NewStore(c.holding, ledger.DefaultPatience()), ledger.Options{Instance: s.instance, Now: s.now})
	for i := range n {
		c.people = append(c.people, s.born(t, ctx, fmt.Sprintf("p%d", i)))
	}
	return c
}

// ends are the calls that end everybody.
func (c *crowd) ends(t *testing.T) (calls []func(context.Context) error) {
	for _, p := range c.people {
		calls = append(calls, c.end(t, p))
	}
	return calls
}

func (c *crowd) end(t *testing.T, p living) func(context.Context) error {
	return func(ctx context.Context) error {
		asked, err := c.writer.AskRetirement(ctx, messages.AskRetirement{Principal: p.Principal, By: "test " + p.Actor})
		if err == nil && asked != (messages.RetirementAsked{Principal: p.Principal, UID: p.uid, Operation: ledger.OperationOf(p.uid)}) {
			t.Errorf("%s is answered %+v", p.Actor, asked)
		}
		return err
	}
}

// ended wants each of some revoked once and asked for.
func (s *bench) allEnded(t *testing.T, ctx context.Context, people []living) {
	t.Helper()
	asked := must(ledger.Asked(ctx, s.store))(t)
	for _, p := range people {
		g := must(s.Authority(ctx, messages.ReadAuthority{Principal: p.Principal}))(t).Grant
		if g.State != messages.GrantRevoked || g.Revision != 2 || !slices.Contains(asked, p.uid) {
			t.Errorf("%s is %s at revision %d, asked for %v", p.Actor, g.State, g.Revision, slices.Contains(asked, p.uid))
		}
	}
}

func noneFailed(t *testing.T, outcomes []error) {
	t.Helper()
	for i, err := range outcomes {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// endedTogether ends a crowd, one of them twice over, and takes back what is begun, in
// one batch.
func endedTogether(t *testing.T, ctx context.Context, s *bench) {
	c := s.crowded(t, ctx, s.backend, 24)
	begun := s.born(t, ctx, "begun")
	must(s.AskRetirement(ctx, messages.AskRetirement{Principal: begun.Principal, By: "test"}))(t)
	if err := s.holder(t, ctx).beginRetirement(ctx, begun.uid); err != nil {
		t.Fatal(err)
	}
	unask := func(ctx context.Context) error {
		_, err := c.writer.Unask(ctx, messages.Unask{UIDs: []string{begun.uid, c.people[3].uid}})
		return err
	}
	revoke := func(ctx context.Context) error {
		_, err := c.writer.RevokeGrant(ctx, messages.RevokeGrant{Principal: c.people[5].Principal, By: "test"})
		return err
	}
	noneFailed(t, c.together(ctx, append(c.ends(t), unask, c.end(t, c.people[1]), revoke)...))
	s.allEnded(t, ctx, c.people)
	if asked := must(ledger.AskedBy(ctx, s.store, s.instance))(t); len(asked) != len(c.people) || slices.Contains(asked, begun.uid) {
		t.Errorf("asked for: %v", asked)
	}
	if rows := c.sizes(); !slices.Equal(rows, []int{2, len(c.people)}) {
		t.Errorf("batches of %v rows", rows)
	}
}

// poisonedAmongThem ends a crowd of whom some have no grant, cannot be read, are another
// incarnation, or have grants that move all the time: each is told what is his.
func poisonedAmongThem(t *testing.T, ctx context.Context, s *bench) {
	c := s.crowded(t, ctx, s.backend, 12)
	const moves = 3
	moving, garbled := c.people[4], c.people[7]
	s.broken = true // by the next line
	must(s.store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Replace(s.row(t, ctx, ledger.GrantKey(garbled.Principal)), []byte("{}"))}}))(t)
	moved, key := 0, ledger.GrantKey(moving.Principal)
	c.before = func(n int, b ledger.Batch) {
		with := slices.ContainsFunc(b.Writes, func(w ledger.Write) bool { return w.Key == key })
		if with && n > 2 && len(b.Writes) > 2 {
			t.Errorf("batch %d has whose grant moves with %d others", n, len(b.Writes)-2)
		}
		if with && moved < moves {
			moved++
			must(s.backend.Send(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Touch(s.row(t, ctx, key))}}))(t)
		}
	}
	ask := func(m messages.AskRetirement) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.writer.AskRetirement(ctx, m); return err }
	}
	calls := append(c.ends(t),
		ask(messages.AskRetirement{Principal: principal("nobody"), By: "test"}),
		ask(messages.AskRetirement{Principal: c.people[2].Principal, UID: names.NewUID(), By: "test"}))
	outcomes := c.together(ctx, calls...)
	for i, expected := range map[int]error{7: messages.RowCorrupt, 12: messages.GrantNotFound, 13: messages.IncarnationEnded} {
		want(t, outcomes[i], expected)
		outcomes[i] = nil
	}
	noneFailed(t, outcomes)
	s.allEnded(t, ctx, slices.DeleteFunc(slices.Clone(c.people), func(p living) bool { return p == garbled }))
	// The first; all others; those without whose grant moved; and he until it stands still.
	want := []int{2, 11, 10}
	for range moves {
		want = append(want, 2)
	}
	if rows := c.sizes(); !slices.Equal(rows, want) {
		t.Errorf("batches of %v rows, want %v", rows, want)
	}
}

func (s *bench) row(t *testing.T, ctx context.Context, key string) ledger.Row {
	t.Helper()
	row, found, err := s.store.Get(ctx, key)
	if err != nil || !found {
		t.Errorf("%s: %v, %v", key, found, err)
	}
	return row
}

// endedUnheard loses the answer to a crowd's batch; the second time something else of the
// same instance is written over what it asked for, before anybody asks again.
func endedUnheard(t *testing.T, ctx context.Context, s *bench) {
	c := s.crowded(t, ctx, s.backend, 8)
	late := s.born(t, ctx, "late")
	c.after = func(n int, last uint64, err error) (uint64, error) {
		if n == 2 {
			must(s.AskRetirement(ctx, messages.AskRetirement{Principal: late.Principal, By: "test"}))(t)
		}
		if err == nil && n <= 2 {
			return 0, ledger.ErrUnknown
		}
		return last, err
	}
	noneFailed(t, c.together(ctx, c.ends(t)...))
	s.allEnded(t, ctx, append(c.people, late))
	for _, n := range c.sizes() {
		if n != 2 && n != len(c.people) {
			t.Errorf("batches of %v rows", c.sizes())
		}
	}
}

// endedByTwo has two processes end the same crowd.
func endedByTwo(t *testing.T, ctx context.Context, s *bench) {
	one := s.crowded(t, ctx, s.backend, 10)
	two := newBench(s.backend)
	two.clock = s.now()
	other := &crowd{holding: hold(s.backend), people: one.people}
	other.writer = ledger.NewWriter(ledger.NewStore(other.holding, ledger.DefaultPatience()), ledger.Options{Instance: two.instance, Now: s.now})
	var both sync.WaitGroup
	for _, c := range []*crowd{one, other} {
		both.Go(func() { noneFailed(t, c.together(ctx, c.ends(t)...)) })
	}
	both.Wait()
	s.allEnded(t, ctx, one.people)
}

// crowdCut cuts the process at the batch of a crowd. All of it is there or nothing, and
// another process ends whoever is left.
func crowdCut(how cut) func(t *testing.T, ctx context.Context, s *bench) {
	return func(t *testing.T, ctx context.Context, s *bench) {
		c := s.crowded(t, ctx, &cutting{Backend: s.backend, at: 1, cut: how}, 8)
		outcomes := c.together(ctx, c.ends(t)...)
		want(t, outcomes[0], nil)
		for i, err := range outcomes[1:] {
			if expected := map[bool]error{true: errDead}[how != cutAnswer]; !errors.Is(err, expected) {
				t.Errorf("call %d: %v", i+1, err)
			}
		}
		if asked, want := len(must(ledger.Asked(ctx, s.store))(t)), map[cut]int{cutBefore: 1, cutAfter: 8, cutAnswer: 8}[how]; asked != want {
			t.Errorf("%d are asked for, want %d", asked, want)
		}
		if err := ledger.CheckInvariants(ctx, s.store); err != nil {
			t.Errorf("what is left does not hold: %v", err)
		}
		next := &crowd{holding: hold(s.backend), writer: s.Writer, people: c.people}
		for _, end := range next.ends(t) {
			want(t, end(ctx), nil)
		}
		s.allEnded(t, ctx, c.people)
		s.retireAsked(t, ctx)
	}
}
