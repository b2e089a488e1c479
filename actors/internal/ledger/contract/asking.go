package contract

import (
	"context"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func asking(t *testing.T, ctx context.Context, s *bench) {
	p := s.born(t, ctx, "p")
	ask := messages.AskRetirement{Principal: p.Principal, By: "test"}
	asked := must(s.AskRetirement(ctx, ask))(t)
	if asked.UID != p.uid || asked.Operation != ledger.OperationOf(p.uid) || names.CheckUID(asked.Operation) != nil {
		t.Errorf("asked: %+v", asked)
	}
	if s.head(t, ctx, p).State != messages.HeadActive || must(s.Authority(ctx, messages.ReadAuthority{Principal: p.Principal}))(t).Grant.State != messages.GrantRevoked {
		t.Error("only the grant is revoked")
	}
	want(t, s.enrol(ctx, "p", p.uid), messages.NotGranted)
	before := s.revision(t, ctx, ledger.GrantKey(p.Principal))
	if again := must(s.AskRetirement(ctx, ask))(t); again != asked {
		t.Errorf("asked again: %+v", again)
	}
	if s.revision(t, ctx, ledger.GrantKey(p.Principal)) != before {
		t.Error("the grant was revoked twice")
	}
	// Another process may ask too; each takes back only what it asked for.
	other := newBench(s.backend)
	must(other.AskRetirement(ctx, ask))(t)
	if uids := must(ledger.AskedBy(ctx, s.store, s.instance))(t); !slices.Equal(uids, []string{p.uid}) {
		t.Errorf("asked by this one: %v", uids)
	}
	unask := messages.Unask{UIDs: []string{p.uid}}
	must(s.Unask(ctx, unask))(t)
	if uids := must(ledger.Asked(ctx, s.store))(t); !slices.Equal(uids, []string{p.uid}) {
		t.Errorf("it was taken back before it was begun: %v", uids)
	}
	holder := s.holder(t, ctx)
	if err := holder.beginRetirement(ctx, p.uid); err != nil {
		t.Fatal(err)
	}
	must(s.Unask(ctx, messages.Unask{}))(t)
	if uids := must(ledger.AskedBy(ctx, s.store, s.instance))(t); len(uids) != 1 {
		t.Errorf("taken back unasked: %v", uids)
	}
	must(s.Unask(ctx, unask))(t)
	if uids := must(ledger.AskedBy(ctx, s.store, s.instance))(t); len(uids) != 0 {
		t.Errorf("not taken back: %v", uids)
	}
	if uids := must(ledger.Asked(ctx, s.store))(t); !slices.Equal(uids, []string{p.uid}) {
		t.Errorf("it took back another's: %v", uids)
	}
	// Under way, and done: the answer is the same, and nothing is asked for any more.
	must(other.Unask(ctx, unask))(t)
	for _, do := range []func(context.Context, string) (messages.Operation, error){holder.Operation, holder.Run} {
		must(do(ctx, asked.Operation))(t)
		if again := must(s.AskRetirement(ctx, ask))(t); again != asked {
			t.Errorf("asked again: %+v", again)
		}
		if uids := must(ledger.Asked(ctx, s.store))(t); len(uids) != 0 {
			t.Errorf("asked for: %v", uids)
		}
	}
	// A stale name ends nobody.
	next := s.born(t, ctx, "p")
	stale := ask
	stale.UID = p.uid
	if again := must(s.AskRetirement(ctx, stale))(t); again != asked {
		t.Errorf("asked by the old name: %+v", again)
	}
	stale.UID = names.NewUID()
	_, err := s.AskRetirement(ctx, stale)
	want(t, err, messages.IncarnationEnded)
	if found := must(s.Authority(ctx, messages.ReadAuthority{Principal: p.Principal}))(t); found.Grant.State != messages.GrantLive || found.Grant.UID != next.uid {
		t.Errorf("his successor's grant is %+v", found.Grant)
	}
}

func nothingToEnd(t *testing.T, ctx context.Context, s *bench) {
	made := must(s.PutGrant(ctx, person("p")))(t)
	asked := must(s.AskRetirement(ctx, messages.AskRetirement{Principal: made.Principal, By: "test"}))(t)
	if asked != (messages.RetirementAsked{Principal: made.Principal, UID: made.UID}) {
		t.Errorf("asked: %+v", asked)
	}
	if uids := must(ledger.Asked(ctx, s.store))(t); len(uids) != 0 {
		t.Errorf("asked for: %v", uids)
	}
	// Granted at once, since there was nobody to end.
	s.born(t, ctx, "p")
	for _, bad := range []messages.AskRetirement{
		{Principal: messages.Principal{Owner: "x", Actor: "y"}, By: "test"}, {Principal: made.Principal},
		{Principal: made.Principal, UID: "x", By: "test"},
	} {
		_, err := s.AskRetirement(ctx, bad)
		want(t, err, messages.Malformed)
	}
	_, err := s.AskRetirement(ctx, messages.AskRetirement{Principal: principal("nobody"), By: "test"})
	want(t, err, messages.GrantNotFound)
}

func rosters(t *testing.T, ctx context.Context, s *bench) {
	if known := must(s.Roster(ctx))(t); len(known.Names) != 0 {
		t.Errorf("known at first: %v", known)
	}
	_, err := s.ForgetServer(ctx, messages.ForgetServer{Name: "a"})
	want(t, err, messages.ServerUnknown)
	if known := must(s.LearnServers(ctx, messages.LearnServers{Names: []string{"b", "a", "b"}}))(t); !slices.Equal(known.Names, []string{"a", "b"}) {
		t.Errorf("learnt: %v", known)
	}
	before := s.revision(t, ctx, ledger.RosterKey)
	if known := must(s.LearnServers(ctx, messages.LearnServers{Names: []string{"a"}}))(t); !slices.Equal(known.Names, []string{"a", "b"}) {
		t.Errorf("learnt again: %v", known)
	}
	if s.revision(t, ctx, ledger.RosterKey) != before {
		t.Error("what is known was written again")
	}
	atOnce(8, func(i int) error {
		_, err := s.LearnServers(ctx, messages.LearnServers{Names: []string{string(rune('c' + i))}})
		if err != nil {
			t.Errorf("learn: %v", err)
		}
		return err
	})
	must(s.ForgetServer(ctx, messages.ForgetServer{Name: "a"}))(t)
	if known := must(s.Roster(ctx))(t); len(known.Names) != 9 || known.Names[0] != "b" {
		t.Errorf("known: %v", known)
	}
	_, err = s.ForgetServer(ctx, messages.ForgetServer{Name: "a"})
	want(t, err, messages.ServerUnknown)
	_, err = s.LearnServers(ctx, messages.LearnServers{Names: []string{""}})
	want(t, err, messages.Malformed)
}
