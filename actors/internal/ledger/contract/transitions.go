package contract

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const owner = "u_7ddcihobiesn4x46pu2mxn2qee"

func principal(actor string) messages.Principal {
	return messages.Principal{Owner: owner, Actor: actor}
}

// bench is one ledger with a clock that the test moves.
type bench struct {
	*ledger.Writer
	*ledger.Reader
	backend  ledger.Backend
	instance string
	// broken is set by whoever broke the ledger by hand.
	broken bool
	store  *ledger.Store
	mu     sync.Mutex
	clock  time.Time
}

func newBench(b ledger.Backend) *bench {
	s := &bench{backend: b, instance: names.NewUID(), store: ledger.NewStore(b, ledger.DefaultPatience()), clock: time.UnixMilli(1_800_000_000_000).UTC()}
	s.Writer = ledger.NewWriter(s.store, ledger.Options{Instance: s.instance, Now: s.now})
	s.Reader = ledger.NewReader(s.store, s.now)
	return s
}

func (s *bench) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// holder takes the plane.
func (s *bench) holder(t *testing.T, ctx context.Context) *Holder {
	t.Helper()
	return must(NewHolder(ctx, s.store, ledger.Options{Now: s.now}))(t)
}

// retireAsked has somebody take the plane and retire all that is asked for.
func (s *bench) retireAsked(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := s.holder(t, ctx).RetireAsked(ctx); err != nil {
		t.Fatal(err)
	}
	asked := must(ledger.Asked(ctx, s.store))(t)
	must(s.Unask(ctx, messages.Unask{UIDs: asked}))(t)
	if left := must(ledger.Asked(ctx, s.store))(t); len(left) != 0 {
		t.Fatalf("still asked for: %v", left)
	}
}

func (s *bench) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

// Transitions runs the transitions of grants and roots over a backend. open gives a
// new and empty one; crowd is how many first exchanges come at once.
func Transitions(t *testing.T, crowd int, open func(t *testing.T) Subject) {
	FirstExchanges(t, crowd, patience, open)
	cases := []struct {
		name string
		run  func(*testing.T, context.Context, *bench)
	}{
		{"life of a person", lifeOfAPerson}, {"life of a machine", lifeOfAMachine},
		{"edit", edits}, {"refused before anything is written", malformed},
		{"revoke reaches everybody below", revokeBelow}, {"a child and its parent's end", childAgainstRevoke},
		{"revoke against enrol", revokeAgainstEnrol}, {"root renewal", renewal},
		{"edits at once", editsAtOnce}, {"puts at once", putsAtOnce},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { within(t, patience, open, c.run) })
	}
}

// FirstExchanges lets a crowd come at once, to one principal and to one each: none
// may fail.
func FirstExchanges(t *testing.T, crowd int, limit time.Duration, open func(t *testing.T) Subject) {
	t.Run("one root for all", func(t *testing.T) {
		within(t, limit, open, func(t *testing.T, ctx context.Context, s *bench) { oneRoot(t, ctx, s, crowd) })
	})
	t.Run("a root each", func(t *testing.T) {
		within(t, limit, open, func(t *testing.T, ctx context.Context, s *bench) { rootEach(t, ctx, s, crowd) })
	})
}

// within runs one case on a ledger of its own, which must hold in the end.
func within(t *testing.T, limit time.Duration, open func(t *testing.T) Subject, run func(*testing.T, context.Context, *bench)) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := newBench(open(t).Backend)
	run(t, ctx, s)
	if err := ledger.CheckInvariants(ctx, s.store); err != nil && !s.broken {
		t.Errorf("the ledger does not hold: %v", err)
	}
}

func person(actor string) messages.PutGrant {
	return messages.PutGrant{Principal: principal(actor), Kind: messages.Interactive, By: "test", Label: "a person",
		Allowance: messages.Allowance{Scope: []string{"a", "b"}, Publish: []string{"pub.>"}, Subscribe: []string{"sub.>"}}}
}

func machine(actor, parent string) messages.PutGrant {
	return messages.PutGrant{Principal: principal(actor), Kind: messages.Managed, Parent: principal(parent), By: "test",
		Allowance: messages.Allowance{Scope: []string{"a"}, Publish: []string{"pub.x"}}}
}

func lifeOfAPerson(t *testing.T, ctx context.Context, s *bench) {
	ask := person("p")
	want(t, s.enrol(ctx, "p", names.NewUID()), messages.NotGranted)
	first := must(s.PutGrant(ctx, ask))(t)
	if first.Revision != 1 || !first.ActorToken.IsZero() || names.CheckUID(first.UID) != nil {
		t.Fatalf("got %+v", first)
	}
	_, err := s.PutGrant(ctx, ask)
	want(t, err, messages.GrantStands)
	want(t, s.enrol(ctx, "p", names.NewUID()), messages.IncarnationEnded)

	root := must(s.Enrol(ctx, messages.Enrol{Principal: ask.Principal, UID: first.UID}))(t)
	if again := must(s.Enrol(ctx, messages.Enrol{Principal: ask.Principal, UID: first.UID}))(t); again != root {
		t.Fatalf("the root was %v and is %v", root, again)
	}
	found := must(s.Authority(ctx, messages.ReadAuthority{Principal: ask.Principal, Head: true}))(t)
	if !found.HasHead || found.Head.State != messages.HeadActive || found.Head.Epoch != 1 || found.Head.Generation != 1 ||
		found.Head.UID != first.UID || found.Head.Root.ID != root.CredentialID || !found.Head.Root.Expires.Equal(root.Expires) {
		t.Fatalf("the head is %+v", found.Head)
	}
	if !found.HasGrant || found.Grant.Label != ask.Label || found.Grant.By != "test" || found.Grant.Publish[0] != "pub.>" {
		t.Fatalf("the grant is %+v", found.Grant)
	}

	ended := must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: ask.Principal, By: "other"}))(t)
	if again := must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: ask.Principal, By: "third"}))(t); again != ended || ended.UID != first.UID {
		t.Fatalf("revoked as %+v, then as %+v", ended, again)
	}
	want(t, s.enrol(ctx, "p", first.UID), messages.NotGranted)
	_, err = s.PutGrant(ctx, ask)
	want(t, err, messages.IncarnationStanding)
	s.retireAsked(t, ctx)
	found = must(s.Authority(ctx, messages.ReadAuthority{Principal: ask.Principal, Head: true}))(t)
	if found.Head.State != messages.HeadRetired || found.Head.Root.ID != "" || found.Grant.State != messages.GrantRevoked || found.Grant.By != "other" {
		t.Fatalf("after the end: %+v", found)
	}

	second := must(s.PutGrant(ctx, ask))(t)
	if second.UID == first.UID || second.Revision != 1 {
		t.Fatalf("granted anew as %+v", second)
	}
	want(t, s.enrol(ctx, "p", first.UID), messages.IncarnationEnded)
	next := must(s.Enrol(ctx, messages.Enrol{Principal: ask.Principal, UID: second.UID}))(t)
	if next.CredentialID == root.CredentialID {
		t.Fatal("a new incarnation has the old root")
	}
	_, err = s.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("nobody"), By: "test"})
	want(t, err, messages.GrantNotFound)
}

func lifeOfAMachine(t *testing.T, ctx context.Context, s *bench) {
	_, err := s.PutGrant(ctx, machine("m", "p"))
	want(t, err, messages.ParentMissing)
	must(s.PutGrant(ctx, person("p")))(t)
	wide := machine("m", "p")
	wide.Allowance.Scope = []string{"c"}
	_, err = s.PutGrant(ctx, wide)
	want(t, err, messages.ScopeExceeded)
	if found := must(s.Authority(ctx, messages.ReadAuthority{Principal: wide.Principal}))(t); found.HasGrant {
		t.Fatal("a refused grant was written")
	}
	made := must(s.PutGrant(ctx, machine("m", "p")))(t)
	under := must(s.PutGrant(ctx, machine("n", "m")))(t)
	found := must(s.Authority(ctx, messages.ReadAuthority{Principal: under.Principal}))(t)
	if found.HasHead || len(found.Chain) != 2 || found.Chain[0].Principal != made.Principal || found.Chain[1].Principal != principal("p") {
		t.Fatalf("the chain is %+v", found.Chain)
	}
	if len(made.ActorToken.Reveal()) != 43 || found.Chain[0].TokenHash != ledger.HashSecret(made.ActorToken) {
		t.Fatal("the row does not hold the hash of the secret")
	}
	rotated := must(s.EditGrant(ctx, messages.EditGrant{Principal: made.Principal, Revision: 1, By: "test",
		Allowance: machine("m", "p").Allowance, RotateSecret: true}))(t)
	found = must(s.Authority(ctx, messages.ReadAuthority{Principal: made.Principal}))(t)
	if rotated.ActorToken.Reveal() == made.ActorToken.Reveal() || found.Grant.TokenHash != ledger.HashSecret(rotated.ActorToken) {
		t.Fatal("the secret was not rotated")
	}
	if free := must(s.PutGrant(ctx, messages.PutGrant{Principal: principal("free"), Kind: messages.Managed, By: "test"}))(t); free.ActorToken.IsZero() {
		t.Fatal("a machine without a parent got no secret")
	}
}

func edits(t *testing.T, ctx context.Context, s *bench) {
	made := must(s.PutGrant(ctx, person("p")))(t)
	must(s.PutGrant(ctx, machine("m", "p")))(t)
	edit := messages.EditGrant{Principal: made.Principal, Revision: 1, By: "editor", Label: "new",
		Allowance: messages.Allowance{Scope: []string{"a"}, Publish: []string{"pub.x"}}}
	after := must(s.EditGrant(ctx, edit))(t)
	if after.UID != made.UID || after.Revision != 2 || !after.ActorToken.IsZero() {
		t.Fatalf("got %+v", after)
	}
	_, err := s.EditGrant(ctx, edit)
	want(t, err, messages.GrantMoved)
	grant := must(s.Authority(ctx, messages.ReadAuthority{Principal: made.Principal}))(t).Grant
	if grant.Label != "new" || grant.By != "editor" || len(grant.Scope) != 1 || len(grant.Subscribe) != 0 || grant.Subscribe == nil {
		t.Fatalf("got %+v", grant)
	}
	edit.Revision, edit.RotateSecret = 2, true
	_, err = s.EditGrant(ctx, edit)
	want(t, err, messages.Malformed)
	_, err = s.EditGrant(ctx, messages.EditGrant{Principal: principal("m"), Revision: 1, By: "e", Allowance: messages.Allowance{Scope: []string{"b"}}})
	want(t, err, messages.ScopeExceeded)
	_, err = s.EditGrant(ctx, messages.EditGrant{Principal: principal("nobody"), Revision: 1, By: "e"})
	want(t, err, messages.GrantNotFound)
	must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: made.Principal, By: "e"}))(t)
	_, err = s.EditGrant(ctx, messages.EditGrant{Principal: made.Principal, Revision: 3, By: "e"})
	want(t, err, messages.GrantNotFound)
}

func malformed(t *testing.T, ctx context.Context, s *bench) {
	for name, spoil := range map[string]func(*messages.PutGrant){
		"owner":      func(p *messages.PutGrant) { p.Principal.Owner = "u_*" },
		"actor":      func(p *messages.PutGrant) { p.Principal.Actor = "a.b" },
		"kind":       func(p *messages.PutGrant) { p.Kind = "other" },
		"pattern":    func(p *messages.PutGrant) { p.Allowance.Publish = []string{"$JS.API.>"} },
		"scope":      func(p *messages.PutGrant) { p.Allowance.Scope = []string{"a b"} },
		"parent":     func(p *messages.PutGrant) { p.Parent = messages.Principal{Owner: "x", Actor: "y"} },
		"own parent": func(p *messages.PutGrant) { p.Parent = p.Principal },
		"label":      func(p *messages.PutGrant) { p.Label = "a\nb" },
		"writer":     func(p *messages.PutGrant) { p.By = "" },
	} {
		ask := person("p")
		spoil(&ask)
		if _, err := s.PutGrant(ctx, ask); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want(t, s.enrol(ctx, "a b", names.NewUID()), messages.Malformed)
	want(t, s.enrol(ctx, "p", "*"), messages.Malformed)
	_, err := s.RevokeGrant(ctx, messages.RevokeGrant{Principal: messages.Principal{Owner: owner, Actor: ">"}, By: "x"})
	want(t, err, messages.Malformed)
	_, err = s.Authority(ctx, messages.ReadAuthority{Principal: messages.Principal{Owner: owner, Actor: ">"}})
	want(t, err, messages.Malformed)
	if keys, err := s.store.List(ctx, ">"); err != nil || len(keys) != 0 {
		t.Errorf("written: %v, %v", keys, err)
	}
}

func (s *bench) enrol(ctx context.Context, actor, uid string) error {
	_, err := s.Enrol(ctx, messages.Enrol{Principal: principal(actor), UID: uid})
	return err
}

func want(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func must[V any](value V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
