package connect_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// The whole way: into DATA under its name and incarnation, what is granted and
// nothing besides, the own inbox and no other (E095, E123).
func TestAdmittedConnection(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "Laptop_1", messages.Allowance{Publish: []string{"chat.>"}, Subscribe: []string{"chat.*", "news"}})
	c := st.mustDial(t, p, bearer)

	conns, err := st.srv.Connz(&server.ConnzOptions{Username: true, User: p.Name()})
	must(t, err)
	if len(conns.Conns) != 1 || conns.Conns[0].Account != st.material.Account(trust.DATA) || fmt.Sprint(conns.Conns[0].Tags) != "[uid:"+uid+"]" {
		t.Errorf("the server lists %+v", conns.Conns)
	}

	sub, err := c.SubscribeSync("chat.*")
	must(t, err)
	must(t, c.Publish("chat.a", []byte("hello")))
	if msg, err := sub.NextMsg(patience); err != nil || string(msg.Data) != "hello" {
		t.Errorf("got %v, %v", msg, err)
	}
	c.trySubscribe(t, p.InboxPrefix()+".mine.*")
	c.fine(t, "what is granted")

	for _, subject := range []string{"other", ">", "*", "*.a", "$SYS.>", "$SYS.ACCOUNT.>", "_INBOX.>", "_INBOX_" + laptop.Owner + "-x.>", "_R_.>", "$JS.>"} {
		c.trySubscribe(t, subject)
		c.refused(t, subject)
	}
	for _, subject := range []string{"news", "other", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$SYS.REQ.USER.AUTH", p.InboxPrefix() + ".mine.1", "$JS.API.INFO"} {
		must(t, c.PublishRequest(subject, p.InboxPrefix()+".mine.1", nil))
		c.refused(t, subject)
	}
}

// The server lets `chat.>` be subscribed where `chat.*` is allowed. It delivers
// what `chat.*` would, and no more.
func TestLastWildcardStaysNarrow(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "hears", messages.Allowance{Subscribe: []string{"chat.*", "a.*.*", "jobs.*", "jobs.>"}})
	q, speaking := st.grant(t, "speaks", messages.Allowance{Publish: []string{"chat.>", "a.>", "jobs.>"}})
	hears, speaks := st.mustDial(t, p, bearer), st.mustDial(t, q, speaking)
	for _, c := range []struct {
		subject      string
		never, heard []string
	}{
		{"chat.>", []string{"chat.a.b", "chat.a.b.c"}, []string{"chat.a"}},
		{"a.*.>", []string{"a.b.c.d"}, []string{"a.b.c"}},
		{"jobs.>", nil, []string{"jobs.a", "jobs.a.b"}},
	} {
		sub, err := hears.SubscribeSync(c.subject)
		must(t, err)
		must(t, hears.Flush())
		for _, subject := range append(c.never, c.heard...) {
			must(t, speaks.Publish(subject, nil))
		}
		must(t, speaks.Flush())
		for _, want := range c.heard {
			msg, err := sub.NextMsg(patience)
			must(t, err)
			if msg.Subject != want {
				t.Errorf("subscribed to %s, heard %s, want %s", c.subject, msg.Subject, want)
			}
		}
	}
	hears.fine(t, "what is granted")
}

// Empty lists are nothing (E117), whatever the server takes an absent list for.
func TestEmptyListsOnAServer(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "quiet", messages.Allowance{})
	c := st.mustDial(t, p, bearer)
	c.trySubscribe(t, p.InboxPrefix()+".>")
	c.fine(t, "the own inbox")
	for _, subject := range []string{"a", "a.b", ">", "*", "$SYS.>"} {
		c.trySubscribe(t, subject)
		c.refused(t, subject)
	}
	for _, subject := range []string{"a", "a.b", "$SYS.REQ.USER.INFO", "$JS.API.INFO"} {
		must(t, c.Publish(subject, nil))
		c.refused(t, subject)
	}
}

// Who serves answers a request in the asker's inbox, once; who does not, cannot.
func TestServingOnAServer(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	asker, token := st.grant(t, "asker", messages.Allowance{Publish: []string{"svc.>"}})
	ask := st.mustDial(t, asker, token)
	for _, c := range []struct {
		actor string
		a     messages.Allowance
		want  bool
	}{
		{"serves", messages.Allowance{Subscribe: []string{"svc.serves"}, Serve: true}, true},
		{"serves_also", messages.Allowance{Subscribe: []string{"svc.serves_also"}, Publish: []string{"other"}, Serve: true}, true},
		{"listens", messages.Allowance{Subscribe: []string{"svc.listens"}}, false},
	} {
		p, token := st.grant(t, c.actor, c.a)
		service := st.mustDial(t, p, token)
		requests, err := service.SubscribeSync("svc." + c.actor)
		must(t, err)
		must(t, service.Flush())
		answers, err := ask.SubscribeSync(ask.NewInbox())
		must(t, err)
		must(t, ask.PublishRequest("svc."+c.actor, answers.Subject, nil))
		request, err := requests.NextMsg(patience)
		must(t, err)
		must(t, request.Respond([]byte("first")))
		if !c.want {
			service.refused(t, answers.Subject)
			continue
		}
		service.fine(t, "the reply of who serves")
		if answer, err := answers.NextMsg(patience); err != nil || string(answer.Data) != "first" {
			t.Errorf("%s: got %v, %v", c.actor, answer, err)
		}
		must(t, request.Respond([]byte("second")))
		service.refused(t, answers.Subject)
	}
	ask.fine(t, "asking")
}

// A refusal is answered, fast, and what is refused does not come in.
func TestDeniedConnection(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "laptop", messages.Allowance{})
	revoked, revokedBearer := st.grant(t, "revoked", messages.Allowance{})
	a := st.records[revoked]
	a.Grant.State = messages.GrantRevoked
	st.set(revoked, a)
	elsewhere := newSite(t) // E093: another authority's keyring stands for another space's
	at := time.Now()
	foreign := elsewhere.bearer(t, identity.Bearer{Principal: p, UID: uid, CredentialID: root, IssuedAt: at, Expires: at.Add(time.Minute)})

	for what, token := range map[string]string{
		"no bearer": "", "junk": "junk", "tampered": bearer[:len(bearer)-10] + "AAAAAAAAAA", "of elsewhere": foreign, "revoked": revokedBearer,
	} {
		before := st.answers.Load()
		fastest := patience
		for range 3 { // the machine may be busy once
			start := time.Now()
			_, err := st.dial(t, p, token)
			fastest = min(fastest, time.Since(start))
			if !errors.Is(err, nats.ErrAuthorization) {
				t.Fatalf("%s: got %v, want a refusal", what, err)
			}
		}
		if fastest > 200*time.Millisecond {
			t.Errorf("%s: the refusal took %v", what, fastest)
		}
		if n := st.answers.Load() - before; n != 3 {
			t.Errorf("%s: %d answers for 3 connects", what, n)
		}
	}
	st.mustDial(t, p, bearer)
}

// Our own inability is met with silence, after which the same client comes in.
func TestUnansweredConnection(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	p, bearer := st.grant(t, "laptop", messages.Allowance{})
	st.mu.Lock()
	st.unable = messages.Unproved
	st.mu.Unlock()
	if _, err := st.dial(t, p, bearer); err == nil {
		t.Fatal("it came in without a decision")
	}
	if n := st.answers.Load(); n != 0 {
		t.Fatalf("%d answers were sent", n)
	}
	st.mu.Lock()
	st.unable = nil
	st.mu.Unlock()
	st.mustDial(t, p, bearer)
}

// E094. The server ends a connection when its user does; a fresh connect comes in.
func TestConnectionEndsWithItsUser(t *testing.T) {
	st := newStation(t, connect.Profile{Name: "brief", MaxLife: 2 * time.Second})
	st.respond(t, 0)
	p, bearer := st.grant(t, "laptop", messages.Allowance{Role: "brief"})
	c := st.mustDial(t, p, bearer)
	select {
	case <-c.closed:
	case <-time.After(patience):
		t.Fatal("it outlives its user")
	}
	select {
	case err := <-c.complaints:
		if !errors.Is(err, nats.ErrAuthExpired) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the server did not say why")
	}
	st.mustDial(t, p, bearer)
}

// E091. Two responders in one group: each request has one answer.
func TestTwoResponders(t *testing.T) {
	st := newStation(t)
	st.respond(t, 0)
	st.respond(t, 1)
	p, bearer := st.grant(t, "laptop", messages.Allowance{})
	const clients, each = 4, 5
	var dialling sync.WaitGroup
	failed := make(chan error, clients*each)
	for range clients {
		dialling.Go(func() {
			for range each {
				if _, err := st.dial(t, p, bearer); err != nil {
					failed <- err
				}
			}
		})
	}
	dialling.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if n := st.answers.Load(); n != clients*each {
		t.Errorf("%d answers for %d connects", n, clients*each)
	}
}
