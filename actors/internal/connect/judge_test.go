package connect_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

type change func(*identity.Bearer, *messages.Authority)

// faults are one each, in the order in which they are found.
var faults = []struct {
	what string
	make change
	want messages.Error
}{
	{"a principal that is none", func(b *identity.Bearer, _ *messages.Authority) { b.Principal.Owner = "local" }, messages.InternalFault},
	{"the head of another", func(_ *identity.Bearer, a *messages.Authority) { a.Head.Principal.Actor = "x" }, messages.InternalFault},
	{"the grant of another", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Principal.Actor = "x" }, messages.InternalFault},
	{"nothing at all", func(_ *identity.Bearer, a *messages.Authority) { *a = messages.Authority{} }, messages.NotGranted},
	{"no head", func(_ *identity.Bearer, a *messages.Authority) { a.HasHead, a.Head = false, messages.Head{} }, messages.CredentialGone},
	{"another incarnation", func(_ *identity.Bearer, a *messages.Authority) { a.Head.UID = root }, messages.IncarnationEnded},
	{"a retired head", func(_ *identity.Bearer, a *messages.Authority) { a.Head.State = messages.HeadRetired }, messages.IncarnationEnded},
	{"a frozen head", func(_ *identity.Bearer, a *messages.Authority) { a.Head.State = messages.HeadFrozen }, messages.GateShut},
	{"a retiring head", func(_ *identity.Bearer, a *messages.Authority) { a.Head.State = messages.HeadRetiring }, messages.GateShut},
	{"a head in no known state", func(_ *identity.Bearer, a *messages.Authority) { a.Head.State = "" }, messages.GateShut},
	{"no root", func(_ *identity.Bearer, a *messages.Authority) { a.Head.Root = messages.Root{} }, messages.CredentialGone},
	{"no root, and a bearer that names none", func(b *identity.Bearer, a *messages.Authority) { a.Head.Root, b.CredentialID = messages.Root{}, "" }, messages.CredentialGone},
	{"another root", func(_ *identity.Bearer, a *messages.Authority) { a.Head.Root.ID = uid }, messages.CredentialGone},
	{"E102 a root that ends now", func(_ *identity.Bearer, a *messages.Authority) { a.Head.Root.Expires = now }, messages.CredentialExpired},
	{"no grant", func(_ *identity.Bearer, a *messages.Authority) { a.HasGrant, a.Grant = false, messages.Grant{} }, messages.NotGranted},
	{"a revoked grant", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.State = messages.GrantRevoked }, messages.NotGranted},
	{"a grant in no known state", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.State = "" }, messages.NotGranted},
	{"E120 granted anew", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.UID = root }, messages.IncarnationEnded},
	{"a grant of no known kind", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Kind = "" }, messages.GrantKindMismatch},
	{"another parent", func(b *identity.Bearer, _ *messages.Authority) {
		b.Parent = messages.Principal{Owner: laptop.Owner, Actor: "x"}
	}, messages.ParentMissing},
	{"E119 narrowed", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Scope = []string{"see"} }, messages.ScopeExceeded},
	{"a missing parent", func(_ *identity.Bearer, a *messages.Authority) {
		a.Grant.Parent = messages.Principal{Owner: laptop.Owner, Actor: "x"}
	}, messages.ParentMissing},
	{"an unknown role", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Role = "gone" }, messages.ProfileUnknown},
	{"a garbled list", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Publish = []string{"a..b"} }, messages.RowCorrupt},
	{"a list of everything", func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Subscribe = []string{">"} }, messages.RowCorrupt},
	{"a bearer that ends now", func(b *identity.Bearer, _ *messages.Authority) { b.Expires = now }, messages.ProofExpired},
}

func TestDecideFaults(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	for _, f := range faults {
		t.Run(f.what, func(t *testing.T) {
			bearer, authority := standing()
			f.make(&bearer, &authority)
			admission, err := judge.Decide(bearer, authority, now)
			if !errors.Is(err, f.want) || messages.Describe(err) != f.want {
				t.Fatalf("got %v, want %v", err, f.want)
			}
			if admission.UID != "" || admission.Permissions.Pub.Allow != nil {
				t.Fatalf("an admission came with the refusal: %+v", admission)
			}
		})
	}
}

// Of two faults the earlier one is told: head, credential, grant, chain, permissions.
func TestDecideOrder(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	// One that does not undo another, for each step.
	order := []string{"another incarnation", "a frozen head", "another root", "E102 a root that ends now", "a revoked grant", "E120 granted anew",
		"a grant of no known kind", "E119 narrowed", "a missing parent", "an unknown role", "a bearer that ends now"}
	find := func(what string) (change, messages.Error) {
		for _, f := range faults {
			if f.what == what {
				return f.make, f.want
			}
		}
		t.Fatalf("no fault %q", what)
		return nil, messages.Error{}
	}
	for i, early := range order {
		for _, late := range order[i+1:] {
			bearer, authority := standing()
			first, want := find(early)
			second, _ := find(late)
			second(&bearer, &authority)
			first(&bearer, &authority)
			if _, err := judge.Decide(bearer, authority, now); messages.Describe(err) != want {
				t.Errorf("%s and %s: got %v, want %v", early, late, err, want)
			}
		}
	}
}

// A decision leaves the records it was given alone, and is the same every time.
func TestDecideIsPure(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	bearer, authority := standing()
	before := fmt.Sprintf("%+v %+v", bearer, authority)
	first, err := judge.Decide(bearer, authority, now)
	must(t, err)
	first.Permissions.Pub.Allow[0], first.Permissions.Sub.Deny[0] = "spoiled", "spoiled"
	second, err := judge.Decide(bearer, authority, now)
	must(t, err)
	if second.Permissions.Pub.Allow[0] != "chat.>" || second.Permissions.Sub.Deny[0] != "$SYS.>" {
		t.Errorf("two admissions share their lists: %+v", second)
	}
	if after := fmt.Sprintf("%+v %+v", bearer, authority); after != before {
		t.Errorf("the arguments became %s", after)
	}
}

// E118. Order does not matter, nor does repetition. E119. A wider grant adds nothing
// that the bearer's scope is asked for.
func TestScopeOfTheBearer(t *testing.T) {
	judge := connect.NewJudge(profiles(t, connect.Profile{Name: "ops", Requires: []string{"see"}}))
	for _, c := range []struct {
		bearer, grant []string
		profile       string
		want          error
	}{
		{[]string{"see", "run"}, []string{"run", "see"}, "", nil},
		{[]string{"run", "run"}, []string{"run"}, "", nil},
		{nil, nil, "", nil},
		{nil, []string{"run"}, "", nil},
		{[]string{"run"}, nil, "", messages.ScopeExceeded},
		{[]string{"see"}, []string{"see"}, "ops", nil},
		{[]string{"run"}, []string{"run", "see"}, "ops", messages.ScopeExceeded}, // widened after the bearer was signed
	} {
		bearer, authority := standing()
		bearer.Scope, authority.Grant.Scope, bearer.Profile = c.bearer, c.grant, c.profile
		if _, err := judge.Decide(bearer, authority, now); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%v under %v as %q: got %v, want %v", c.bearer, c.grant, c.profile, err, c.want)
		}
	}
}

func TestPickingAProfile(t *testing.T) {
	judge := connect.NewJudge(profiles(t, connect.Profile{Name: "narrow"}, connect.Profile{Name: "ops", Requires: []string{"run"}}))
	for _, c := range []struct {
		role, asked string
		scope       []string
		profile     string
		want        error
	}{
		{"", "", nil, "default", nil},
		{"", "default", nil, "default", nil},
		{"narrow", "", nil, "narrow", nil},
		{"narrow", "narrow", nil, "narrow", nil},
		{"narrow", "default", nil, "", messages.ScopeExceeded}, // asking does not widen
		{"narrow", "default", []string{"role:default"}, "default", nil},
		{"", "narrow", nil, "", messages.ScopeExceeded},
		{"", "narrow", []string{"role:narrow"}, "narrow", nil},
		{"", "ops", []string{"run"}, "ops", nil},
		{"", "ops", nil, "", messages.ScopeExceeded},
		{"ops", "", []string{"run"}, "ops", nil},
		{"ops", "", nil, "", messages.ScopeExceeded},
		{"", "gone", []string{"role:gone"}, "", messages.ProfileUnknown},
	} {
		bearer, authority := standing()
		bearer.Profile, authority.Grant.Role, bearer.Scope, authority.Grant.Scope = c.asked, c.role, c.scope, c.scope
		admission, err := judge.Decide(bearer, authority, now)
		if admission.Profile != c.profile || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("role %q, asked %q, scope %v: got %q, %v, want %q, %v", c.role, c.asked, c.scope, admission.Profile, err, c.profile, c.want)
		}
	}
}

// A machine's chain is checked at every connect: a grandparent narrowed after the
// bearer was signed bites at once.
func TestChainAtConnect(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	at := func(actor string) messages.Principal { return messages.Principal{Owner: laptop.Owner, Actor: actor} }
	bearer, authority := standing()
	authority.Grant.Kind, authority.Grant.Parent, bearer.Parent = messages.Managed, at("mid"), at("mid")
	mid, top := authority.Grant, authority.Grant
	mid.Principal, mid.Parent, mid.UID = at("mid"), at("top"), root
	top.Principal, top.Parent, top.UID = at("top"), messages.Principal{}, root
	authority.Chain = []messages.Grant{mid, top}
	if _, err := judge.Decide(bearer, authority, now); err != nil {
		t.Fatal(err)
	}
	authority.Chain[1].Publish = []string{"chat.>"}
	if _, err := judge.Decide(bearer, authority, now); !errors.Is(err, messages.ScopeExceeded) {
		t.Errorf("narrowed: got %v", err)
	}
	authority.Chain = authority.Chain[:1]
	if _, err := judge.Decide(bearer, authority, now); !errors.Is(err, messages.ParentMissing) {
		t.Errorf("missing: got %v", err)
	}
}

// E087. The connection ends with whatever ends first.
func TestExpiry(t *testing.T) {
	judge := connect.NewJudge(profiles(t, connect.Profile{Name: "brief", MaxLife: time.Minute}))
	for _, c := range []struct {
		what         string
		bearer, root time.Duration
		role         string
		want         time.Duration
	}{
		{"bearer first", 10 * time.Minute, time.Hour, "", 10 * time.Minute},
		{"credential first", 10 * time.Minute, 5 * time.Minute, "", 5 * time.Minute},
		{"credential in a fraction", 10 * time.Minute, 5*time.Minute + 900*time.Millisecond, "", 5 * time.Minute},
		{"profile first", 10 * time.Minute, time.Hour, "brief", time.Minute},
		{"profile last", 30 * time.Second, time.Hour, "brief", 30 * time.Second},
	} {
		bearer, authority := standing()
		bearer.Expires, authority.Head.Root.Expires, authority.Grant.Role = now.Add(c.bearer), now.Add(c.root), c.role
		admission, err := judge.Decide(bearer, authority, now)
		if err != nil || !admission.Expires.Equal(now.Add(c.want)) {
			t.Errorf("%s: got %v, %v, want %v", c.what, admission.Expires, err, now.Add(c.want))
		}
	}
	for longest, want := range map[time.Duration]time.Duration{2 * time.Minute: time.Minute, 20 * time.Second: 20 * time.Second, 0: time.Minute} {
		bearer, authority := standing()
		bearer.Expires, authority.Head.Root.Expires, authority.Grant.Role = now.Add(10*time.Minute), now.Add(time.Hour), "brief"
		bounded := connect.NewBoundedJudge(profiles(t, connect.Profile{Name: "brief", MaxLife: time.Minute}), longest)
		if admission, err := bounded.Decide(bearer, authority, now); err != nil || !admission.Expires.Equal(now.Add(want)) {
			t.Errorf("bounded to %v: got %v, %v, want %v", longest, admission.Expires, err, now.Add(want))
		}
	}
	bearer, authority := standing()
	authority.Head.Root.Expires = now.Add(500 * time.Millisecond)
	if _, err := judge.Decide(bearer, authority, now); !errors.Is(err, messages.ProofExpired) {
		t.Errorf("less than a second left: got %v", err)
	}
}
