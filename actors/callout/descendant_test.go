package callout

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// A bearer of a descendant is admitted by the record of that descendant, read beside
// the rest, and refused once it is revoked or where there is none.
func TestADescendantIsReadToo(t *testing.T) {
	s := start(t)
	bearer, err := anybody{}.Verify("", time.Now())
	s.must(err)
	s.answer.Store(func(to func(any)) {
		to(messages.Authority{
			HasHead: true, Head: messages.Head{Principal: bearer.Principal, UID: bearer.UID, Epoch: 1, State: messages.HeadActive, Generation: 1,
				Root: messages.Root{ID: "another", Expires: time.Now().Add(time.Hour)}},
			HasGrant: true, Grant: messages.Grant{Principal: bearer.Principal, UID: bearer.UID, Kind: messages.Interactive, State: messages.GrantLive},
			ReadAt: time.Now(),
		})
	})
	dial := func() error {
		nc, err := nats.Connect(s.space.URL(), nats.UserCredentials(trust.SentinelCreds(s.space.Dir)), nats.Token("x"), nats.NoReconnect(), nats.Timeout(longEnough))
		if err == nil {
			nc.Close()
		}
		return err
	}
	if dial() == nil {
		t.Error("let in by a credential that was never issued")
	}
	record := messages.Credential{ID: bearer.CredentialID, UID: bearer.UID, Holder: bearer.Principal, Active: true, Expires: time.Now().Add(time.Minute)}
	s.credential.Store(&record)
	s.must(dial())
	revoked := record
	revoked.Active = false
	s.credential.Store(&revoked)
	if dial() == nil {
		t.Error("let in by a credential that was revoked")
	}
	for _, d := range s.denials.List() {
		if d.Reason != messages.CredentialGone.Reason {
			t.Errorf("denied for %s", d.Reason)
		}
	}
}
