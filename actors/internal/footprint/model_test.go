package footprint_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// TestModel has processes that die at any write enrol, ask again, revoke, retire and
// settle, while places come and go: after each step what is left holds, and once
// everything is there and somebody settles, it has ended right.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		s := newStage()
		fine := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		fine(s.parent(ctx, "demo.>"))
		begin := func(t *rapid.T) *process {
			c := rapid.SampledFrom([]cut{noCut, noCut, cutBefore, cutAfter, cutAnswer}).Draw(t, "cut")
			return s.start(rapid.IntRange(0, 12).Draw(t, "at"), c)
		}
		actor := rapid.SampledFrom([]string{"a", "b"})
		t.Repeat(map[string]func(*rapid.T){
			"enrol": func(t *rapid.T) {
				who, secret := actor.Draw(t, "who"), rapid.SampledFrom([]string{"one", "two"}).Draw(t, "secret")
				before, _ := journal{s.start(-1, noCut)}.Standing(ctx, principal(who))
				made, err := begin(t).Enrol(ctx, ask(who, secret))
				held := before.HasGrant && before.Grant.State == messages.GrantLive
				switch {
				case err == nil && (made.Step != messages.ProvisionReady || made.Grant.TokenHash != hash(secret) || held && made.Grant.UID != before.Grant.UID):
					t.Fatalf("answered %+v over %+v", made, before.Grant)
				case held && before.Grant.TokenHash != hash(secret) && err == nil:
					t.Fatal("two secrets are granted one name")
				}
				if errors.Is(err, messages.FootprintRefused) && held {
					after, _ := journal{s.start(-1, noCut)}.Standing(ctx, principal(who))
					if after.Grant.State != messages.GrantLive {
						t.Fatal("a grant that stood was taken back")
					}
				}
			},
			"exchange": func(t *rapid.T) {
				who := actor.Draw(t, "who")
				a, err := journal{s.start(-1, noCut)}.Standing(ctx, principal(who))
				if err == nil && a.HasGrant {
					_, _ = begin(t).ledger.Enrol(ctx, messages.Enrol{Principal: principal(who), UID: a.Grant.UID})
				}
			},
			"revoke": func(t *rapid.T) {
				_, _ = begin(t).ledger.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal(actor.Draw(t, "who")), By: "x"})
			},
			"retire": func(*rapid.T) { fine(s.retire(ctx)) },
			"place": func(t *rapid.T) {
				s.breaks(rapid.SampledFrom([]string{"DM", "acl_main"}).Draw(t, "place"), rapid.Bool().Draw(t, "gone"))
			},
			"time": func(*rapid.T) { s.pass(lives) },
			"settle": func(t *rapid.T) {
				p := begin(t)
				keys, _ := journal{p}.Keys(ctx, ledger.AllProvisions)
				for _, key := range keys {
					_, _ = p.Settle(ctx, key)
				}
			},
			"": func(*rapid.T) { fine(s.check(ctx, false)) },
		})
		s.breaks("DM", false)
		s.breaks("acl_main", false)
		fine(s.settle(ctx))
		fine(s.settle(ctx))
		fine(s.check(ctx, true))
	})
}

// Of any number at once one is granted: the others get the same answer with the same
// secret, and a conflict with another.
func TestManyAtOnce(t *testing.T) {
	for range 20 {
		s := newStage()
		must(t, s.parent(t.Context(), "demo.>"))
		var wait sync.WaitGroup
		uids := make(map[string]string)
		var mu sync.Mutex
		for i := range 8 {
			wait.Go(func() {
				secret := []string{"one", "two"}[i%2]
				made, err := s.start(-1, noCut).Enrol(context.Background(), ask("bot", secret))
				if err != nil {
					if !errors.Is(err, messages.GrantStands) {
						t.Errorf("refused with %v", err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				uids[secret+" "+made.Grant.UID] = secret
			})
		}
		wait.Wait()
		if len(uids) != 1 {
			t.Fatalf("granted are %v", uids)
		}
		must(t, s.settle(t.Context()))
		must(t, s.check(t.Context(), true))
		if len(s.all()) != 4 {
			t.Fatalf("there are %v", s.all())
		}
	}
}

// Whoever stood still while his enrolment was undone makes nothing that stays.
func TestAMakerWhoStoodStill(t *testing.T) {
	ctx := t.Context()
	s := newStage()
	must(t, s.parent(ctx, "demo.>"))
	late := s.start(-1, noCut)
	late.Sagas.Sites = paused{sites{late}, func() {
		p := s.start(-1, noCut)
		_, err := p.ledger.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("bot"), By: "x"})
		must(t, err)
		keys, err := journal{p}.Keys(ctx, ledger.AllProvisions)
		must(t, err)
		for _, key := range keys {
			if final, err := p.Settle(ctx, key); final || !errors.Is(err, messages.EnrolmentPending) {
				t.Errorf("settled: %v, %v", final, err)
			}
		}
	}}
	if _, err := late.Enrol(ctx, ask("bot", "one")); err == nil {
		t.Error("it was answered, and is revoked")
	}
	must(t, s.settle(ctx))
	must(t, s.check(ctx, true))
	if left := s.all(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// paused does something between the record of a part and its making.
type paused struct {
	footprint.Sites
	meanwhile func()
}

func (p paused) Provision(ctx context.Context, e messages.Provision, do func(context.Context, footprint.Site) error) (bool, error) {
	return p.Sites.Provision(ctx, e, func(ctx context.Context, site footprint.Site) error {
		return do(ctx, &standing{Site: site, meanwhile: p.meanwhile})
	})
}

type standing struct {
	footprint.Site
	meanwhile func()
}

func (s *standing) MakeConsumer(ctx context.Context, c messages.FootprintConsumer) error {
	if s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile = nil
	}
	return s.Site.MakeConsumer(ctx, c)
}

// Nothing is removed from under who may still be connected.
func TestRemovalAwaitsTheEnd(t *testing.T) {
	ctx := t.Context()
	s := newStage()
	must(t, s.parent(ctx, "demo.>"))
	p := s.start(-1, noCut)
	made, err := p.Enrol(ctx, ask("bot", "one"))
	must(t, err)
	_, err = p.ledger.Enrol(ctx, messages.Enrol{Principal: principal("bot"), UID: made.Grant.UID})
	must(t, err)
	_, err = p.ledger.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("bot"), By: "x"})
	must(t, err)
	key := ledger.ProvisionKey(principal("bot"), made.Grant.UID, hash("one"))
	if final, err := p.Settle(ctx, key); final || err != nil || len(s.all()) != 4 {
		t.Errorf("settled before the end: %v, %v, and %d parts are there", final, err, len(s.all()))
	}
	must(t, s.retire(ctx))
	// The next one of the name is there by then, and is left alone.
	next, err := p.Enrol(ctx, ask("bot", "one"))
	must(t, err)
	if final, err := p.Settle(ctx, key); !final || err != nil {
		t.Errorf("settled: %v, %v", final, err)
	}
	for name, there := range s.all() {
		if there.mark != next.Grant.UID {
			t.Errorf("%s of %s is left", name, there.mark)
		}
	}
	if len(s.all()) != 4 || next.Grant.UID == made.Grant.UID {
		t.Errorf("there are %v", s.all())
	}
}

// Whoever lost the answer finds it by the secret's hash, and nobody else's.
func TestFind(t *testing.T) {
	ctx := t.Context()
	s := newStage()
	must(t, s.parent(ctx, "demo.>"))
	p := s.start(-1, noCut)
	made, err := p.Enrol(ctx, ask("bot", "one"))
	must(t, err)
	if found, err := p.Find(ctx, hash("one")); err != nil || found.Grant.UID != made.Grant.UID || found.Step != messages.ProvisionReady {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := p.Find(ctx, hash("two")); !errors.Is(err, messages.EnrolmentNotFound) {
		t.Errorf("another: %v", err)
	}
	if _, err := p.Find(ctx, "x"); !errors.Is(err, messages.Malformed) {
		t.Errorf("no hash: %v", err)
	}
	_, err = p.ledger.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("bot"), By: "x"})
	must(t, err)
	if _, err := p.Find(ctx, hash("one")); !errors.Is(err, messages.EnrolmentNotFound) {
		t.Errorf("after its end: %v", err)
	}
}

// A machine that was granted without a footprint gets one when it is enrolled again, and
// keeps its grant whatever becomes of that.
func TestWhatWasGrantedBeforeIsKept(t *testing.T) {
	ctx := t.Context()
	s := newStage()
	must(t, s.parent(ctx, "demo.>"))
	p := s.start(-1, noCut)
	old, err := p.ledger.PutGrant(ctx, messages.PutGrant{Principal: principal("bot"), Kind: messages.Managed,
		Allowance: messages.Allowance{Publish: []string{"demo.a"}}, Parent: principal("boss"), By: "x"})
	must(t, err)
	s.breaks("DM", true)
	question := ask("bot", old.ActorToken.Reveal())
	if _, err := p.Enrol(ctx, question); !errors.Is(err, messages.FootprintRefused) {
		t.Errorf("without a place: %v", err)
	}
	must(t, ignoring(s.settle(ctx), messages.FootprintRefused))
	s.breaks("DM", false)
	made, err := p.Enrol(ctx, question)
	if err != nil || made.Grant.UID != old.UID || len(s.all()) != 4 {
		t.Errorf("enrolled %+v, %v, with %d parts", made, err, len(s.all()))
	}
}

func ignoring(err error, entry messages.Error) error {
	if errors.Is(err, entry) {
		return nil
	}
	return err
}

// What is asked for a second time is held to the parents as they are then.
func TestRetriesAreHeldToTheParents(t *testing.T) {
	ctx := t.Context()
	for name, change := range map[string]func(*process) error{
		"narrowed": func(p *process) error {
			_, err := p.ledger.EditGrant(ctx, messages.EditGrant{Principal: principal("boss"), Revision: 1, Allowance: messages.Allowance{Publish: []string{"demo.b"}}, By: "x"})
			return err
		},
		"revoked": func(p *process) error {
			_, err := p.ledger.AskRetirement(ctx, messages.AskRetirement{Principal: principal("boss"), By: "x"})
			return err
		},
	} {
		s := newStage()
		must(t, s.parent(ctx, "demo.>"))
		p := s.start(-1, noCut)
		_, err := p.Enrol(ctx, ask("bot", "one"))
		must(t, err)
		must(t, change(p))
		before := fmt.Sprint(s.all())
		_, err = p.Enrol(ctx, ask("bot", "one"))
		if code := messages.Describe(err).Code; code != messages.PermissionDenied {
			t.Errorf("%s: %v", name, err)
		}
		if after := fmt.Sprint(s.all()); after != before {
			t.Errorf("%s: there were %s and are %s", name, before, after)
		}
	}
}
