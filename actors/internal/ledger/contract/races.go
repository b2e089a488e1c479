package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func revokeBelow(t *testing.T, ctx context.Context, s *bench) {
	for _, ask := range []messages.PutGrant{person("p"), machine("m", "p"), machine("n", "m"), machine("o", "n"), person("q"), machine("r", "q")} {
		made := must(s.PutGrant(ctx, ask))(t)
		must(s.Enrol(ctx, messages.Enrol{Principal: made.Principal, UID: made.UID}))(t)
	}
	must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("p"), By: "test"}))(t)
	if asked := must(ledger.Asked(ctx, s.store))(t); len(asked) != 4 {
		t.Errorf("asked for: %v", asked)
	}
	s.retireAsked(t, ctx)
	for actor, live := range map[string]bool{"p": false, "m": false, "n": false, "o": false, "q": true, "r": true} {
		found := must(s.Authority(ctx, messages.ReadAuthority{Principal: principal(actor), Head: true}))(t)
		if (found.Grant.State == messages.GrantLive) != live || (found.Head.State == messages.HeadActive) != live {
			t.Errorf("%s: grant %s, head %s", actor, found.Grant.State, found.Head.State)
		}
	}
	if all := must(s.Grants(ctx))(t).Items; len(all) != 6 || all[0].Principal.Actor != "m" || all[5].Principal.Actor != "r" {
		t.Errorf("listed: %+v", all)
	}
}

// childAgainstRevoke grants children while their parent is revoked: none may be
// left live, whoever is first.
func childAgainstRevoke(t *testing.T, ctx context.Context, s *bench) {
	must(s.PutGrant(ctx, person("p")))(t)
	var racing sync.WaitGroup
	for i := range 6 {
		racing.Go(func() {
			_, err := s.PutGrant(ctx, machine(fmt.Sprintf("m%d", i), "p"))
			if err != nil && !errors.Is(err, messages.ParentMissing) {
				t.Errorf("child %d: %v", i, err)
			}
		})
	}
	racing.Go(func() {
		if _, err := s.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("p"), By: "test"}); err != nil {
			t.Errorf("revoke: %v", err)
		}
	})
	racing.Wait()
	for _, g := range must(s.Grants(ctx))(t).Items {
		if g.State == messages.GrantLive {
			t.Errorf("%s is live under a revoked parent", g.Principal)
		}
	}
}

// revokeAgainstEnrol ends a principal at the moment of its first exchange.
func revokeAgainstEnrol(t *testing.T, ctx context.Context, s *bench) {
	for i := range 6 {
		ask := person(fmt.Sprintf("p%d", i))
		made := must(s.PutGrant(ctx, ask))(t)
		var racing sync.WaitGroup
		racing.Go(func() {
			_, err := s.Enrol(ctx, messages.Enrol{Principal: made.Principal, UID: made.UID})
			if err != nil && !errors.Is(err, messages.NotGranted) {
				t.Errorf("enrol %d: %v", i, err)
			}
		})
		racing.Go(func() {
			if _, err := s.RevokeGrant(ctx, messages.RevokeGrant{Principal: made.Principal, By: "test"}); err != nil {
				t.Errorf("revoke %d: %v", i, err)
			}
		})
		racing.Wait()
		s.retireAsked(t, ctx)
		found := must(s.Authority(ctx, messages.ReadAuthority{Principal: made.Principal, Head: true}))(t)
		if found.Grant.State != messages.GrantRevoked || (found.HasHead && found.Head.State != messages.HeadRetired) {
			t.Errorf("%d: grant %s, head %s", i, found.Grant.State, found.Head.State)
		}
	}
}

func renewal(t *testing.T, ctx context.Context, s *bench) {
	made := must(s.PutGrant(ctx, person("p")))(t)
	ask := messages.Enrol{Principal: made.Principal, UID: made.UID}
	first := must(s.Enrol(ctx, ask))(t)
	if life := first.Expires.Sub(s.now()); life != 90*24*time.Hour {
		t.Fatalf("a root lives %v", life)
	}
	s.pass(45 * 24 * time.Hour)
	if same := must(s.Enrol(ctx, ask))(t); same != first {
		t.Fatalf("at half its life: %+v", same)
	}
	s.pass(time.Millisecond)
	renewed := must(s.Enrol(ctx, ask))(t)
	if renewed.CredentialID != first.CredentialID || !renewed.Expires.Equal(s.now().Add(90*24*time.Hour)) {
		t.Fatalf("below half its life: %+v", renewed)
	}
	s.pass(400 * 24 * time.Hour)
	if late := must(s.Enrol(ctx, ask))(t); late.CredentialID != first.CredentialID || !late.Expires.After(s.now()) {
		t.Fatalf("long after its end: %+v", late)
	}
}

// oneRoot lets a crowd exchange for one principal at once.
func oneRoot(t *testing.T, ctx context.Context, s *bench, crowd int) {
	made := must(s.PutGrant(ctx, person("p")))(t)
	var enrolling sync.WaitGroup
	got := make([]messages.Enrolled, crowd)
	for i := range crowd {
		enrolling.Go(func() {
			var err error
			if got[i], err = s.Enrol(ctx, messages.Enrol{Principal: made.Principal, UID: made.UID}); err != nil {
				t.Errorf("exchange %d: %v", i, err)
			}
		})
	}
	enrolling.Wait()
	for i, g := range got {
		if g != got[0] {
			t.Fatalf("exchange %d got %+v, the first %+v", i, g, got[0])
		}
	}
}

// rootEach lets as many principals make their first exchange at once.
func rootEach(t *testing.T, ctx context.Context, s *bench, crowd int) {
	made := make([]messages.GrantWritten, crowd)
	var granting, enrolling sync.WaitGroup
	for i := range crowd {
		granting.Go(func() {
			var err error
			if made[i], err = s.PutGrant(ctx, person(fmt.Sprintf("p%d", i))); err != nil {
				t.Errorf("grant %d: %v", i, err)
			}
		})
	}
	granting.Wait()
	for i := range crowd {
		enrolling.Go(func() {
			if _, err := s.Enrol(ctx, messages.Enrol{Principal: made[i].Principal, UID: made[i].UID}); err != nil {
				t.Errorf("exchange %d: %v", i, err)
			}
		})
	}
	enrolling.Wait()
}

// editsAtOnce lets several edit one revision: one may, and all others are told.
func editsAtOnce(t *testing.T, ctx context.Context, s *bench) {
	made := must(s.PutGrant(ctx, person("p")))(t)
	outcomes := atOnce(8, func(int) error {
		_, err := s.EditGrant(ctx, messages.EditGrant{Principal: made.Principal, Revision: 1, By: "e", Allowance: person("p").Allowance})
		return err
	})
	oneOf(t, outcomes, messages.GrantMoved)
}

func putsAtOnce(t *testing.T, ctx context.Context, s *bench) {
	outcomes := atOnce(8, func(int) error {
		_, err := s.PutGrant(ctx, person("p"))
		return err
	})
	oneOf(t, outcomes, messages.GrantStands)
}

func atOnce(n int, do func(i int) error) []error {
	outcomes := make([]error, n)
	var doing sync.WaitGroup
	for i := range n {
		doing.Go(func() { outcomes[i] = do(i) })
	}
	doing.Wait()
	return outcomes
}

// oneOf wants one success among refusals of one kind.
func oneOf(t *testing.T, outcomes []error, refusal error) {
	t.Helper()
	won := 0
	for _, err := range outcomes {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, refusal):
			t.Errorf("got %v, want %v", err, refusal)
		}
	}
	if won != 1 {
		t.Errorf("%d succeeded", won)
	}
}
