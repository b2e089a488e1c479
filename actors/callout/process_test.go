package callout

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// A bearer of a process of an instance is admitted by the gate of the instance and what
// the process was issued, read beside the rest; of nobody else is that read.
func TestAProcessIsReadToo(t *testing.T) {
	s := start(t)
	bearer, err := anybody{}.Verify("served", time.Now())
	s.must(err)
	s.answer.Store(func(to func(any)) {
		to(messages.Authority{
			HasHead: true, Head: messages.Head{Principal: bearer.Principal, UID: bearer.UID, Epoch: 1, State: messages.HeadActive, Generation: 1,
				Root: messages.Root{ID: bearer.CredentialID, Expires: time.Now().Add(time.Hour)}},
			HasGrant: true, Grant: messages.Grant{Principal: bearer.Principal, UID: bearer.UID, Kind: messages.Interactive, State: messages.GrantLive},
			ReadAt: time.Now(),
		})
	})
	dial := func(token string) error {
		nc, err := nats.Connect(s.space.URL(), nats.UserCredentials(trust.SentinelCreds(s.space.Dir)), nats.Token(token), nats.NoReconnect(), nats.Timeout(longEnough))
		if err == nil {
			nc.Close()
		}
		return err
	}
	standing := messages.ProcessRead{
		HasGate: true, Gate: messages.Instance{Endpoint: served.Endpoint, Name: served.Instance, State: messages.InstanceOpen, Generation: 1,
			Epoch: served.Epoch, Principal: bearer.Principal},
		HasCredential: true, Credential: messages.InstanceCredential{ID: served.CredentialID, Holder: bearer.Principal, Endpoint: served.Endpoint,
			Instance: served.Instance, Epoch: served.Epoch, Active: true, Expires: time.Now().Add(time.Minute)},
	}
	s.process.Store(&standing)
	s.must(dial("x"))
	if n := s.processes.Load(); n != 0 {
		t.Errorf("the principal's own bearer cost %d reads more", n)
	}
	s.must(dial("served"))
	if n := s.processes.Load(); n != 1 {
		t.Errorf("%d reads", n)
	}
	for _, c := range []struct {
		spoil func(*messages.ProcessRead)
		want  messages.Error
	}{
		{func(p *messages.ProcessRead) { *p = messages.ProcessRead{} }, messages.InstanceNotFound},
		{func(p *messages.ProcessRead) { p.Gate.Epoch++ }, messages.InstanceSuperseded},
		{func(p *messages.ProcessRead) { p.Gate.State = messages.InstanceFrozen }, messages.InstanceNotOpen},
		{func(p *messages.ProcessRead) { p.Credential.Active = false }, messages.CredentialGone},
	} {
		spoilt := standing
		c.spoil(&spoilt)
		s.process.Store(&spoilt)
		if dial("served") == nil {
			t.Errorf("let in in spite of %s", c.want.Reason)
		}
		if last := s.denials.List()[0]; last.Kind != messages.Denied || last.Reason != c.want.Reason || last.Principal != bearer.Principal.String() || last.Remedy == "" {
			t.Errorf("denied as %+v", last)
		}
		s.must(dial("x"))
	}
}
