package footprint_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// work is something of many durable writes, in the ledger and in the account. ready makes
// the stage for it and run does it; done says what must have come of it at last, told how
// often a next process was asked the same question before.
type work struct {
	name  string
	ready func(*testing.T, *stage)
	run   func(context.Context, *process) error
	// alive says whether the machine is there in the end.
	alive func(run error) bool
}

func works() []work {
	nothing := func(*testing.T, *stage) {}
	enrol := func(ctx context.Context, p *process) error {
		_, err := p.Enrol(ctx, ask("bot", "one"))
		return err
	}
	enrolled := func(t *testing.T, s *stage) {
		made, err := s.start(-1, noCut).Enrol(t.Context(), ask("bot", "one"))
		must(t, err)
		_, err = s.start(-1, noCut).ledger.Enrol(t.Context(), messages.Enrol{Principal: principal("bot"), UID: made.Grant.UID})
		must(t, err)
	}
	return []work{
		{"enrolment", nothing, enrol, nil},
		{"enrolment that fails", func(_ *testing.T, s *stage) { s.breaks("acl_main", true) }, enrol, func(error) bool { return false }},
		{"revocation, retirement, removal", enrolled, func(ctx context.Context, p *process) error {
			_, err := p.ledger.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("bot"), By: "x"})
			if err == nil {
				err = p.retire(ctx)
			}
			keys, _ := journal{p}.Keys(ctx, ledger.AllProvisions)
			for _, key := range keys {
				_, settling := p.Settle(ctx, key)
				err = errors.Join(err, settling)
			}
			return err
		}, nil},
	}
}

// TestCuts cuts each work at every durable write in every way, and boots again: it ends
// right, nothing is left that nobody can name, and nothing is undone that was not made.
func TestCuts(t *testing.T) {
	for _, w := range works() {
		clean := prepared(t, w)
		p := clean.start(-1, noCut)
		_ = w.run(t.Context(), p)
		must(t, clean.check(t.Context(), true))
		if p.writes < 3 {
			t.Fatalf("%s writes %d times", w.name, p.writes)
		}
		for at := range p.writes {
			for _, c := range []cut{cutBefore, cutAfter, cutAnswer} {
				t.Run(fmt.Sprintf("%s, write %d, %s", w.name, at, c), func(t *testing.T) { w.cutAt(t, at, c) })
			}
		}
	}
}

func prepared(t *testing.T, w work) *stage {
	s := newStage()
	must(t, s.parent(t.Context(), "demo.>"))
	for _, r := range template.Rows { // of somebody else, in the same places
		s.things["row/acl_main/"+r.Key] = thing{"somebody", r.Value}
	}
	w.ready(t, s)
	return s
}

func (w work) cutAt(t *testing.T, at int, c cut) {
	ctx := t.Context()
	s := prepared(t, w)
	others := len(template.Rows)
	err := w.run(ctx, s.start(at, c))
	must(t, s.check(ctx, false))
	must(t, s.settle(ctx))
	must(t, s.check(ctx, true))
	things := s.all()
	made := len(things) - others
	a, failed := journal{s.start(-1, noCut)}.Standing(ctx, principal("bot"))
	must(t, failed)
	live := a.HasGrant && a.Grant.State == messages.GrantLive
	if (made != 0) != live || live && made != 4 {
		t.Errorf("live: %v, and %d parts are there: %v", live, made, things)
	}
	switch w.name {
	case "enrolment":
		if err == nil && !live {
			t.Error("it was answered, and is not there")
		}
		again, err := s.start(-1, noCut).Enrol(ctx, ask("bot", "one"))
		if err != nil || live && again.Grant.UID != a.Grant.UID || again.Again != live {
			t.Errorf("asked again: %+v, %v", again, err)
		}
	default:
		if live && (w.name != "revocation, retirement, removal" || at > 0 || c != cutBefore) {
			t.Error("it is granted still")
		}
	}
	must(t, s.check(ctx, true))
}

// A part that was there before is used as it is, and never undone.
func TestWhatWasFoundStays(t *testing.T) {
	s := newStage()
	must(t, s.parent(t.Context(), "demo.>"))
	meanwhile := &between{Sites: sites{}, before: func(p messages.Provision) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.things[rowName(p.Footprint.Rows[0])] = thing{"somebody", p.Footprint.Rows[0].Value}
	}}
	p := s.start(-1, noCut)
	meanwhile.Sites = sites{p}
	p.Sagas.Sites = meanwhile
	made, err := p.Enrol(t.Context(), ask("bot", "one"))
	must(t, err)
	if len(s.all()) != 4 {
		t.Fatalf("there are %v", s.all())
	}
	_, err = p.ledger.RevokeGrant(t.Context(), messages.RevokeGrant{Principal: principal("bot"), By: "x"})
	must(t, err)
	must(t, s.settle(t.Context()))
	if left := s.all(); len(left) != 1 || left[fmt.Sprintf("row/acl_main/%s.bot.%s", owner, made.Grant.UID)].mark != "somebody" {
		t.Errorf("left are %v", left)
	}
}

// between does something before a connection is used.
type between struct {
	footprint.Sites
	before func(messages.Provision)
}

func (b *between) Provision(ctx context.Context, p messages.Provision, do func(context.Context, footprint.Site) error) (bool, error) {
	b.before(p)
	return b.Sites.Provision(ctx, p, do)
}
