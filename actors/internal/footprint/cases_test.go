package footprint_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Where something else stands under the name of a part nothing is made, and it stays.
func TestSomethingElseIsRefused(t *testing.T) {
	ctx := t.Context()
	s := newStage()
	must(t, s.parent(ctx, "demo.>"))
	p := s.start(-1, noCut)
	name := ""
	p.Sagas.Sites = &between{Sites: sites{p}, before: func(e messages.Provision) {
		name = rowName(e.Footprint.Rows[1])
		s.things[name] = thing{"somebody", "something else"}
	}}
	_, err := p.Enrol(ctx, ask("bot", "one"))
	if !errors.Is(err, messages.FootprintRefused) || !strings.Contains(messages.PublicText(err), "row by.") {
		t.Errorf("it says %v", err)
	}
	must(t, s.check(ctx, true))
	if left := s.all(); len(left) != 1 || left[name].spec != "something else" {
		t.Errorf("left are %v", left)
	}
}

// The same where it comes between the look and the making: nothing of it is undone.
func TestSomethingElseComesBetween(t *testing.T) {
	ctx := t.Context()
	for spec, want := range map[string]error{"something else": messages.FootprintRefused, "bot": nil} {
		s := newStage()
		must(t, s.parent(ctx, "demo.>"))
		p := s.start(-1, noCut)
		p.Sagas.Sites = paused{sites{p}, func() {
			keys, err := journal{p}.Keys(ctx, ledger.AllProvisions)
			must(t, err)
			e, _, err := journal{p}.Read(ctx, keys[0])
			must(t, err)
			s.things[rowName(e.Footprint.Rows[1])] = thing{"somebody", spec}
		}}
		if _, err := p.Enrol(ctx, ask("bot", "one")); !errors.Is(err, want) {
			t.Errorf("%s: %v", spec, err)
		}
		_, err := p.ledger.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("bot"), By: "x"})
		must(t, err)
		must(t, s.settle(ctx))
		must(t, s.check(ctx, true))
		if left := s.all(); len(left) != 1 {
			t.Errorf("%s: left are %v", spec, left)
		}
	}
}

// cutAfterGrant leaves a machine that is granted, and nothing else.
func cutAfterGrant(t *testing.T, s *stage) (uid string) {
	t.Helper()
	if _, err := s.start(1, cutAfter).Enrol(t.Context(), ask("bot", "one")); err == nil {
		t.Fatal("a dead process answers")
	}
	a, err := journal{s.start(-1, noCut)}.Standing(t.Context(), principal("bot"))
	must(t, err)
	if !a.HasGrant || a.Grant.State != messages.GrantLive || len(s.all()) != 0 {
		t.Fatalf("left are %+v and %v", a, s.all())
	}
	return a.Grant.UID
}

// What was asked for again keeps its grant, for whoever settles it too; what was not is
// taken back.
func TestARetriedGrantStays(t *testing.T) {
	ctx := t.Context()
	for _, retried := range []bool{true, false} {
		s := newStage()
		must(t, s.parent(ctx, "demo.>"))
		uid := cutAfterGrant(t, s)
		s.breaks("DM", true)
		if retried {
			if _, err := s.start(-1, noCut).Enrol(ctx, ask("bot", "one")); !errors.Is(err, messages.FootprintRefused) {
				t.Errorf("asked again: %v", err)
			}
		}
		must(t, ignoring(s.settle(ctx), messages.FootprintRefused))
		a, err := journal{s.start(-1, noCut)}.Standing(ctx, principal("bot"))
		if err != nil || (a.Grant.State == messages.GrantLive) != retried || a.Grant.UID != uid {
			t.Errorf("asked again %v: the grant is %+v, %v", retried, a.Grant, err)
		}
	}
}

// A machine that exchanged before its footprint was there keeps what there is of it until
// it has ended.
func TestAHalfMadeOneMayBeInUse(t *testing.T) {
	ctx := t.Context()
	s := newStage()
	must(t, s.parent(ctx, "demo.>"))
	if _, err := s.start(4, cutAfter).Enrol(ctx, ask("bot", "one")); err == nil {
		t.Fatal("a dead process answers")
	}
	p := s.start(-1, noCut)
	a, err := journal{p}.Standing(ctx, principal("bot"))
	must(t, err)
	_, err = p.ledger.Enrol(ctx, messages.Enrol{Principal: principal("bot"), UID: a.Grant.UID})
	must(t, err)
	_, err = p.ledger.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("bot"), By: "x"})
	must(t, err)
	s.pass(3 * lives)
	there := len(s.all())
	key := ledger.ProvisionKey(principal("bot"), a.Grant.UID, hash("one"))
	if final, err := p.Settle(ctx, key); final || !errors.Is(err, messages.EnrolmentPending) || len(s.all()) != there || there == 0 {
		t.Errorf("settled before the end: %v, %v; there were %d parts and are %d", final, err, there, len(s.all()))
	}
	must(t, s.retire(ctx))
	if final, err := p.Settle(ctx, key); !final || err != nil || len(s.all()) != 0 {
		t.Errorf("settled after it: %v, %v, %v", final, err, s.all())
	}
}

// What is malformed is refused before anything is written, and so is what nobody may
// give.
func TestRefusals(t *testing.T) {
	ctx := t.Context()
	s := newStage()
	must(t, s.parent(ctx, "demo.>"))
	long := make([]string, 65)
	for i := range long {
		long[i] = "demo.a"
	}
	for name, c := range map[string]struct {
		change func(*messages.EnrolMachine)
		want   messages.Error
	}{
		"a plain secret":     {func(m *messages.EnrolMachine) { m.TokenHash = "secret" }, messages.Malformed},
		"no hash":            {func(m *messages.EnrolMachine) { m.TokenHash = "" }, messages.Malformed},
		"upper case":         {func(m *messages.EnrolMachine) { m.TokenHash = strings.ToUpper(m.TokenHash) }, messages.Malformed},
		"65 subjects":        {func(m *messages.EnrolMachine) { m.Allowance.Subscribe = long }, messages.Malformed},
		"65 to publish":      {func(m *messages.EnrolMachine) { m.Allowance.Publish = long }, messages.Malformed},
		"65 of scope":        {func(m *messages.EnrolMachine) { m.Allowance.Scope = long }, messages.Malformed},
		"a bad pattern":      {func(m *messages.EnrolMachine) { m.Allowance.Publish = []string{"a..b"} }, messages.Malformed},
		"a long label":       {func(m *messages.EnrolMachine) { m.Label = strings.Repeat("x", 257) }, messages.Malformed},
		"its own parent":     {func(m *messages.EnrolMachine) { m.Parent = m.Principal }, messages.Malformed},
		"a bad owner":        {func(m *messages.EnrolMachine) { m.Principal.Owner = "me" }, messages.Malformed},
		"a bad parent":       {func(m *messages.EnrolMachine) { m.Parent.Actor = "no-dashes" }, messages.Malformed},
		"more than a parent": {func(m *messages.EnrolMachine) { m.Allowance.Publish = []string{"other"} }, messages.ScopeExceeded},
		"no parent there":    {func(m *messages.EnrolMachine) { m.Parent.Actor = "nobody" }, messages.ParentMissing},
	} {
		p, question := s.start(-1, noCut), ask("bot", "one")
		c.change(&question)
		err := footprint.CheckAsk(question)
		if err == nil {
			_, err = p.Enrol(ctx, question)
		}
		if !errors.Is(err, c.want) || p.writes != 0 {
			t.Errorf("%s: %v, after %d writes", name, err, p.writes)
		}
	}
	p := s.start(-1, noCut)
	_, err := p.Enrol(ctx, ask("bot", "one"))
	must(t, err)
	writes := p.writes
	for name, question := range map[string]messages.EnrolMachine{
		"another secret": ask("bot", "two"),
		"other rights": func() messages.EnrolMachine {
			m := ask("bot", "one")
			m.Allowance.Publish = nil
			return m
		}(),
		"a person": func() messages.EnrolMachine {
			m := ask("boss", "one")
			m.Parent = messages.Principal{}
			return m
		}(),
	} {
		if _, err := p.Enrol(ctx, question); !errors.Is(err, messages.GrantStands) || p.writes != writes {
			t.Errorf("%s: %v, after %d writes", name, err, p.writes-writes)
		}
	}
}
