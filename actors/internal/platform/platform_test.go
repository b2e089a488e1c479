package platform_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/messages"
)

// told is a platform whose word changes.
type told struct {
	assigned messages.Assignment
	there    bool
	err      error
	asked    int
}

func (a *told) Assignment(context.Context) (messages.Assignment, bool, error) {
	a.asked++
	return a.assigned, a.there, a.err
}

func account(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func TestAdmission(t *testing.T) {
	ours, other := account(t), account(t)
	instance := strings.Repeat("a", 26)
	good := messages.PlatformPlace{Space: "main", Account: ours, Revision: 7, Endpoint: "billing", Instance: instance}
	assigned := messages.Assignment{Account: ours, Revision: 7, Endpoint: "billing", Instance: instance}
	for name, c := range map[string]struct {
		ask     func(*messages.PlatformPlace)
		says    func(*told)
		refusal error
	}{
		"assigned":                       {},
		"another space":                  {ask: func(p *messages.PlatformPlace) { p.Space = "other" }, refusal: messages.NotAssigned},
		"another account":                {ask: func(p *messages.PlatformPlace) { p.Account = other }, refusal: messages.NotAssigned},
		"an older revision":              {ask: func(p *messages.PlatformPlace) { p.Revision = 6 }, refusal: messages.NotAssigned},
		"a newer revision":               {ask: func(p *messages.PlatformPlace) { p.Revision = 8 }, refusal: messages.NotAssigned},
		"another instance":               {ask: func(p *messages.PlatformPlace) { p.Instance = strings.Repeat("b", 26) }, refusal: messages.NotAssigned},
		"another endpoint":               {ask: func(p *messages.PlatformPlace) { p.Endpoint = "mail" }, refusal: messages.NotAssigned},
		"nothing is assigned":            {says: func(a *told) { a.there = false }, refusal: messages.NotAssigned},
		"assigned to another account":    {says: func(a *told) { a.assigned.Account = other }, refusal: messages.NotAssigned},
		"the platform does not tell":     {says: func(a *told) { a.err = errors.New("down") }, refusal: messages.PlatformAway},
		"it does not tell, and is wrong": {says: func(a *told) { a.err, a.there = errors.New("down"), false }, refusal: messages.PlatformAway},
	} {
		t.Run(name, func(t *testing.T) {
			says := &told{assigned: assigned, there: true}
			ask := good
			if c.says != nil {
				c.says(says)
			}
			if c.ask != nil {
				c.ask(&ask)
			}
			door, err := platform.Open("main", ours, identity.NewOwnerSecret(), says)
			if err != nil {
				t.Fatal(err)
			}
			got, err := door.Admit(t.Context(), ask)
			if !errors.Is(err, c.refusal) || (err == nil) != (c.refusal == nil) {
				t.Fatalf("got %v, want %v", err, c.refusal)
			}
			if err == nil && got != assigned || err != nil && got != (messages.Assignment{}) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAdmissionIsNeverRemembered(t *testing.T) {
	ours := account(t)
	says := &told{assigned: messages.Assignment{Account: ours, Revision: 1, Endpoint: "e", Instance: "i"}, there: true}
	door, err := platform.Open("main", ours, identity.NewOwnerSecret(), says)
	if err != nil {
		t.Fatal(err)
	}
	ask := messages.PlatformPlace{Space: "main", Account: ours, Revision: 1, Endpoint: "e", Instance: "i"}
	if _, err := door.Admit(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	says.there = false
	if _, err := door.Admit(t.Context(), ask); !errors.Is(err, messages.NotAssigned) || says.asked != 2 {
		t.Errorf("after %d questions: %v", says.asked, err)
	}
}

func TestNobodyHosts(t *testing.T) {
	door, err := platform.Open("main", account(t), identity.NewOwnerSecret(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := door.Admit(t.Context(), messages.PlatformPlace{}); !errors.Is(err, messages.PlatformAbsent) {
		t.Errorf("got %v", err)
	}
}

func TestTheOwnerIsThePlatforms(t *testing.T) {
	secret, ours := identity.NewOwnerSecret(), account(t)
	open := func(space, account string) string {
		door, err := platform.Open(space, account, secret, nil)
		if err != nil {
			t.Fatal(err)
		}
		return door.Owner()
	}
	owner := open("main", ours)
	if !strings.HasPrefix(owner, "p_") || owner != open("main", ours) {
		t.Errorf("the owner is %s", owner)
	}
	if owner == open("other", ours) || owner == open("main", account(t)) {
		t.Error("two platforms have one owner")
	}
	door, _ := platform.Open("main", ours, secret, nil)
	for of, refusal := range map[string]error{owner: nil, "u_" + owner[2:]: messages.InstanceForeign, open("other", ours): messages.InstanceForeign} {
		if err := door.Owns(messages.Instance{Principal: messages.Principal{Owner: of, Actor: "a"}}); !errors.Is(err, refusal) || (err == nil) != (refusal == nil) {
			t.Errorf("%s: %v", of, err)
		}
	}
	for _, bad := range []func() error{
		func() error { _, err := platform.Open("main", "ABC", secret, nil); return err },
		func() error { _, err := platform.Open("Main", ours, secret, nil); return err },
		func() error { _, err := platform.Open("main", ours, messages.NewSecret("short"), nil); return err },
	} {
		if bad() == nil {
			t.Error("a door was opened")
		}
	}
}
