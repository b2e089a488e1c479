package admin

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// What a request says about who sent it counts for nothing: the server writes over it.
func TestNobodyIsWhoTheySay(t *testing.T) {
	s := newStage(t, newPlane(true))
	close(s.plane.over)
	nc := s.requester(laptop, uid)
	s.ask(nc, laptop, uid, "")
	subject := broker.RetireSubject("acme", laptop, uid)
	said := func(account trust.Account, behalf messages.Principal) string {
		text, _ := json.Marshal(map[string]any{"acc": s.space.Material.Account(account), "name_tag": broker.RequesterNames("acme") + behalf.String()})
		return string(text)
	}
	ask := func(nc *nats.Conn, header nats.Header) answer {
		t.Helper()
		m, err := nc.RequestMsg(&nats.Msg{Subject: subject, Header: header}, longEnough)
		s.must(err)
		return s.read(m)
	}
	another := messages.Principal{Owner: owner, Actor: "another"}
	for name, header := range map[string]nats.Header{
		"one":              {"Nats-Request-Info": {said(trust.SVC, another)}},
		"in lower case":    {"nats-request-info": {said(trust.SVC, another)}},
		"of the own":       {"Nats-Request-Info": {said(trust.CTRL, another)}},
		"no JSON":          {"Nats-Request-Info": {"{"}},
		"behind something": {"A": {"b"}, "Nats-Request-Info": {said(trust.SVC, another)}},
	} {
		if got := ask(nc, header); got.Outcome != "retired" {
			t.Errorf("%s: answered %+v", name, got)
		}
	}
	for _, asked := range s.plane.retirements() {
		if asked.By != "rail:"+manager.String() {
			t.Errorf("asked by %s", asked.By)
		}
	}
	// Two of them are one too many, if the server leaves the other.
	before := len(s.plane.retirements())
	if got := ask(nc, nats.Header{"Nats-Request-Info": {said(trust.SVC, another), said(trust.SVC, another)}}); got.Outcome != "retired" && got.Error.Reason != "rail.caller" {
		t.Errorf("two: answered %+v", got)
	}
	for _, asked := range s.plane.retirements()[before:] {
		if asked.By != "rail:"+manager.String() {
			t.Errorf("asked by %s", asked.By)
		}
	}
	// Nor does it make somebody of nobody.
	before = len(s.plane.retirements())
	everything := natsdtest.Connect(t, s.space.URL(), s.space.Material, trust.SVC, natsdtest.Everything())
	for _, header := range []nats.Header{{"Nats-Request-Info": {said(trust.SVC, manager)}}, {"nats-request-info": {said(trust.SVC, manager)}}} {
		if got := ask(everything, header); got.status != "403" || got.Error.Reason != "rail.caller" || !got.undone() {
			t.Errorf("answered %+v", got)
		}
	}
	if asked := s.plane.retirements()[before:]; len(asked) > 0 {
		t.Errorf("asked %+v", asked)
	}
}

// A crowd that waits for what does not end leaves room for everybody else, and each of
// it is answered: those who wait at the end, those who find no place to wait at once.
func TestACrowdThatWaits(t *testing.T) {
	const crowd = maxWaiting + 100
	s := newStage(t, newPlane(true))
	nc := s.requester(laptop, uid)
	s.ask(nc, laptop, uid, `{"wait_ms":0}`)
	s.heard()
	subject := broker.RetireSubject("acme", laptop, uid)
	inbox := nc.NewRespInbox()
	answers, err := nc.SubscribeSync(inbox + ".*")
	s.must(err)
	for range crowd {
		s.must(nc.PublishRequest(subject, inbox+".x", []byte(`{"wait_ms":60000}`)))
	}
	s.must(nc.Flush())
	for range crowd {
		s.heard()
	}
	next := func() answer {
		t.Helper()
		m, err := answers.NextMsg(longEnough)
		s.must(err)
		return s.read(m)
	}
	for range crowd - maxWaiting {
		if got := next(); got.Error.Reason != "operation.pending" || got.Error.Step != "begun" {
			t.Fatalf("who finds no place to wait: %+v", got)
		}
	}
	// Everybody else is answered as ever.
	if got := s.ask(s.requester(laptop, another), laptop, another, ""); got.Error.Reason != "incarnation.superseded" {
		t.Errorf("another one: %+v", got)
	}
	if got := s.ask(nc, laptop, uid, ""); got.Error.Reason != "operation.pending" {
		t.Errorf("one more: %+v", got)
	}
	close(s.plane.over)
	for range maxWaiting {
		if got := next(); got.Outcome != "retired" {
			t.Fatalf("who waited: %+v", got)
		}
	}
	for _, asked := range s.plane.retirements() {
		if asked.Principal != laptop || asked.UID != uid {
			t.Errorf("asked %+v", asked)
		}
	}
}

// Whoever is too many is told so at once; nothing is lost, and nothing is done for it.
func TestMoreThanIsTakenIn(t *testing.T) {
	p := newPlane(true)
	s := newStage(t, p)
	nc := s.requester(laptop, uid)
	s.ask(nc, laptop, uid, `{"wait_ms":0}`)
	const crowd = maxQuestions + 500
	inbox := nc.NewRespInbox()
	answers, err := nc.SubscribeSync(inbox + ".*")
	s.must(err)
	p.mu.Lock() // nobody is answered by the plane meanwhile
	for range crowd {
		s.must(nc.PublishRequest(broker.RetireSubject("acme", laptop, uid), inbox+".x", []byte(`{"wait_ms":0}`)))
	}
	s.must(nc.Flush())
	busy, pending := 0, 0
	count := func() {
		t.Helper()
		m, err := answers.NextMsg(longEnough)
		s.must(err)
		switch got := s.read(m); {
		case got.Error.Retryable && got.undone():
			busy++
		case got.Error.Reason == "operation.pending":
			pending++
		default:
			t.Fatalf("answered %+v", got)
		}
	}
	for range crowd - maxQuestions {
		count()
	}
	p.mu.Unlock()
	for range maxQuestions {
		count()
	}
	if busy < crowd-maxQuestions || busy+pending != crowd {
		t.Errorf("%d were too many, and %d not", busy, pending)
	}
	if got := s.ask(nc, laptop, uid, `{"wait_ms":0}`); got.Error.Reason != "operation.pending" {
		t.Errorf("after it: %+v", got)
	}
}
