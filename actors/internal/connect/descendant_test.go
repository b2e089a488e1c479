package connect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// derived is a bearer of a credential that descends from the root, and its record.
func derived() (identity.Bearer, messages.Authority) {
	b, a := standing()
	b.CredentialID = "handle7"
	a.HasCredential = true
	a.Credential = messages.Credential{ID: "handle7", Holder: b.Principal, UID: b.UID, Active: true, Expires: now.Add(time.Minute)}
	return b, a
}

func TestADescendantIsJudgedByItsOwnRecord(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	b, a := derived()
	if !connect.Descends(b, a) {
		t.Error("it does not count as a descendant")
	}
	admission, err := judge.Decide(b, a, now)
	must(t, err)
	if !admission.Expires.Equal(now.Add(time.Minute).Truncate(time.Second)) {
		t.Errorf("it ends at %s", admission.Expires)
	}
	a.Head.Root.Expires = now // the root may lapse before
	if _, err := judge.Decide(b, a, now); err != nil {
		t.Errorf("under a lapsed root: %v", err)
	}
	for _, f := range []struct {
		what string
		make change
		want messages.Error
	}{
		{"no record", func(_ *identity.Bearer, a *messages.Authority) {
			a.HasCredential, a.Credential = false, messages.Credential{}
		}, messages.CredentialGone},
		{"a record that was not asked for", func(_ *identity.Bearer, a *messages.Authority) { a.HasCredential = false }, messages.CredentialGone},
		{"revoked", func(_ *identity.Bearer, a *messages.Authority) { a.Credential.Active = false }, messages.CredentialGone},
		{"a holder of another case", func(_ *identity.Bearer, a *messages.Authority) {
			a.Credential.Holder.Actor = strings.ToUpper(a.Credential.Holder.Actor)
		}, messages.CredentialGone},
		{"another life's", func(_ *identity.Bearer, a *messages.Authority) { a.Credential.UID = root }, messages.CredentialGone},
		{"another credential's", func(_ *identity.Bearer, a *messages.Authority) { a.Credential.ID = "handle8" }, messages.CredentialGone},
		{"one that ends now", func(_ *identity.Bearer, a *messages.Authority) { a.Credential.Expires = now }, messages.CredentialExpired},
		{"after a takeover", func(_ *identity.Bearer, a *messages.Authority) { a.Head.Root = messages.Root{} }, messages.CredentialGone},
		{"while the incarnation is retired", func(_ *identity.Bearer, a *messages.Authority) { a.Head.State = messages.HeadRetiring }, messages.GateShut},
		{"while it is taken over", func(_ *identity.Bearer, a *messages.Authority) { a.Head.State = messages.HeadFrozen }, messages.GateShut},
	} {
		b, a := derived()
		f.make(&b, &a)
		if _, err := judge.Decide(b, a, now); !errors.Is(err, f.want) || messages.Describe(err) != f.want {
			t.Errorf("%s: got %v, want %v", f.what, err, f.want)
		}
	}
}
