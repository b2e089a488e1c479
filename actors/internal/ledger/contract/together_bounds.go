package contract

import (
	"context"
	"errors"
	"slices"
	"sort"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// fullRow has room for three more in the row of what is asked for. Those who came first
// have it; whoever asks for nobody needs none.
func fullRow(t *testing.T, ctx context.Context, s *bench) {
	c := s.crowded(t, ctx, s.backend, 6)
	unused := must(s.PutGrant(ctx, person("unused")))(t)
	full := make([]string, 12_000) // more than there can be
	for i := range full {
		full[i] = names.NewUID()
	}
	slices.Sort(full)
	encode := func(n int) ([]byte, error) {
		return ledger.EncodeAsked(ledger.Asking{Instance: s.instance, UIDs: full[:n]}, names.NewUID())
	}
	room := sort.Search(len(full), func(n int) bool { _, err := encode(n); return errors.Is(err, messages.Busy) }) - 1
	value := must(encode(room - 3))(t)
	s.broken = true // they are nobody
	must(s.store.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Create(ledger.AskedKey(s.instance), value)}}))(t)
	outcomes := c.together(ctx, append(c.ends(t), func(ctx context.Context) error {
		_, err := c.writer.RevokeGrant(ctx, messages.RevokeGrant{Principal: unused.Principal, By: "test"})
		return err
	})...)
	// The first was alone; of the others two have room, in the order in which they came,
	// which is not that of the calls.
	var ended, busy []living
	for i, p := range c.people {
		if errors.Is(outcomes[i], messages.Busy) {
			busy = append(busy, p)
			continue
		}
		want(t, outcomes[i], nil)
		ended = append(ended, p)
	}
	want(t, outcomes[len(c.people)], nil)
	if len(busy) != 3 {
		t.Errorf("%d had no room", len(busy))
	}
	s.allEnded(t, ctx, ended)
	for _, p := range busy {
		if g := must(s.Authority(ctx, messages.ReadAuthority{Principal: p.Principal}))(t).Grant; g.State != messages.GrantLive {
			t.Errorf("%s had no room, and is %s", p.Actor, g.State)
		}
	}
}

// someGiveUp has some of a crowd give up: one who waits for his turn, and one whose batch
// is on its way; the others are answered.
func someGiveUp(t *testing.T, ctx context.Context, s *bench) {
	c := s.crowded(t, ctx, s.backend, 6)
	tired, early := context.WithCancel(ctx)
	defer early()
	weary, late := context.WithCancel(ctx)
	defer late()
	c.before = func(n int, _ ledger.Batch) {
		if n == 2 {
			late()
		}
	}
	calls := c.ends(t)
	patient := calls[2]
	unsure := calls[1]
	calls[1] = func(ctx context.Context) error { return unsure(noted{weary, func() { ctx.Done() }}) }
	var again error
	calls[2] = func(ctx context.Context) error {
		early()
		gaveUp := patient(tired)
		again = patient(ctx)
		return gaveUp
	}
	outcomes := c.together(ctx, calls...)
	want(t, outcomes[2], messages.Contended)
	if err := outcomes[1]; err != nil && !errors.Is(err, messages.OutcomeUnknown) { // unless he sent it
		t.Errorf("who gave up while it was sent: %v", err)
	}
	outcomes[1], outcomes[2] = nil, again
	noneFailed(t, outcomes)
	must(s.AskRetirement(ctx, messages.AskRetirement{Principal: c.people[1].Principal, By: "test"}))(t) // his may not have been aboard
	s.allEnded(t, ctx, c.people)
}
