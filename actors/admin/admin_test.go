package admin

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestARetirementOverTheRail(t *testing.T) {
	s := newStage(t, newPlane(true))
	close(s.plane.over)
	nc := s.requester(laptop, uid)
	for _, body := range []string{"", "{}", `{"op_id":"` + ledger.OperationOf(uid) + `","wait_ms":0}`} { // a repeat joins it
		got := s.ask(nc, laptop, uid, body)
		if got.Outcome != "retired" || got.OpID != ledger.OperationOf(uid) || got.UID != uid || got.Evicted != 3 || len(got.Servers) != 1 {
			t.Errorf("%q: answered %+v", body, got)
		}
	}
	for _, asked := range s.plane.retirements() {
		if asked != (messages.AskRetirement{Principal: laptop, UID: uid, By: "rail:" + manager.String()}) {
			t.Errorf("asked %+v", asked)
		}
	}
}

// What is refused says so by the code of the catalogue, and asks nobody for anything.
func TestRefusalsOverTheRail(t *testing.T) {
	s := newStage(t, newPlane(true))
	mine, stale, nobody := s.requester(laptop, uid), s.requester(laptop, another), s.requester(manager, uid)
	for _, c := range []struct {
		nc     *nats.Conn
		target messages.Principal
		uid    string
		body   string
		status string
		reason string
	}{
		{mine, laptop, uid, `{"op_id":"` + ledger.OperationOf(another) + `"}`, "403", "operation.underived"},
		{mine, laptop, uid, `{"force":true}`, "400", "request.malformed"},
		// A caller names no gate of its own: who it is the server says.
		{mine, laptop, uid, `{"serveEndpoint":"svc","serveInstanceId":"` + another + `","serveEpoch":0}`, "400", "request.malformed"},
		{mine, laptop, uid, `{"wait_ms":0}` + strings.Repeat(" ", 1024), "400", "request.malformed"},
		{mine, laptop, uid, strings.Repeat("[", 1<<19), "400", "request.malformed"},
		{mine, laptop, uid, strings.Repeat(`{"a":`, 200), "400", "request.malformed"},
		{mine, laptop, uid, "\x00\xff", "400", "request.malformed"},
		{mine, laptop, uid, `{"op_id":"` + "\xff" + `"}`, "400", "request.malformed"},
		{stale, laptop, another, "", "401", "incarnation.superseded"},
		{nobody, manager, uid, "", "412", "incarnation.unknown"},
	} {
		got := s.ask(c.nc, c.target, c.uid, c.body)
		if got.status != c.status || got.Error.Reason != c.reason || !got.undone() {
			t.Errorf("%s of %s: %+v", c.body, c.uid, got)
		}
	}
	// Somebody of the same account who was minted for everything is nobody here.
	everything := natsdtest.Connect(t, s.space.URL(), s.space.Material, trust.SVC, natsdtest.Everything())
	if got := s.ask(everything, laptop, uid, ""); got.status != "403" || got.Error.Reason != "rail.caller" || !got.undone() {
		t.Errorf("answered %+v", got)
	}
	if asked := s.plane.retirements(); len(asked) != 0 {
		t.Errorf("asked %+v", asked)
	}
}

// Whoever may publish in the rail's own account is not believed, whatever a request
// says, and an answer cannot be aimed: neither at an inbox nor at a row.
func TestNobodyOfTheOwnAccountIsAnswered(t *testing.T) {
	s := newStage(t, newPlane(true))
	s.ask(s.requester(laptop, uid), laptop, uid, `{"op_id":"x"}`) // the rail is there
	nc := natsdtest.Connect(t, s.space.URL(), s.space.Material, trust.CTRL, natsdtest.Everything())
	row := "$KV." + broker.AuthorityBucket("acme") + ".plane"
	aimed, err := nc.SubscribeSync(row)
	s.must(err)
	inbox, err := nc.SubscribeSync(nc.NewInbox())
	s.must(err)
	forged, _ := json.Marshal(map[string]string{"acc": s.space.Material.Account(trust.SVC), "name_tag": broker.RequesterNames("acme") + manager.String()})
	for _, reply := range []string{row, inbox.Subject} {
		for _, header := range []nats.Header{nil, {"Nats-Request-Info": {"{}"}}} {
			s.must(nc.PublishMsg(&nats.Msg{Subject: broker.RetireSubject("acme", laptop, uid), Reply: reply, Header: header}))
		}
		s.must(nc.PublishMsg(&nats.Msg{Subject: broker.DescribeSubject("acme"), Reply: reply, Header: nats.Header{"Nats-Request-Info": {string(forged)}}}))
		s.must(nc.PublishMsg(&nats.Msg{Subject: "$SRV.PING.auth", Reply: reply}))
	}
	s.must(nc.Flush())
	// What was asked before this one was heard before it.
	s.ask(s.requester(laptop, another), laptop, another, "")
	for _, sub := range []*nats.Subscription{aimed, inbox} {
		if m, err := sub.NextMsg(200 * time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
			t.Errorf("%s: %s, %v", sub.Subject, m.Data, err)
		}
	}
	if asked := s.plane.retirements(); len(asked) != 0 {
		t.Errorf("asked %+v", asked)
	}
}

// Only who holds the plane serves; whoever waits for it is not there.
func TestOnlyTheHolderServes(t *testing.T) {
	s := newStage(t, newPlane(false))
	nc := s.requester(laptop, uid)
	subject := broker.RetireSubject("acme", laptop, uid)
	if _, err := nc.Request(subject, nil, longEnough); !errors.Is(err, nats.ErrNoResponders) {
		t.Fatalf("asked who does not hold the plane: %v", err)
	}
	s.plane.hold()
	ref, _ := s.tree.Ref(Name)
	s.must(supervisor.Tell(ref, messages.PlaneHeld{ClaimID: "x"}))
	close(s.plane.over)
	if got := s.ask(nc, laptop, uid, ""); got.Outcome != "retired" {
		t.Errorf("answered %+v", got)
	}
}

// A life that follows a dead one is told nothing, and serves all the same.
func TestItComesBack(t *testing.T) {
	s := newStage(t, newPlane(true))
	close(s.plane.over)
	nc := s.requester(laptop, uid)
	s.ask(nc, laptop, uid, "")
	for i, how := range []supervisor.How{supervisor.Panic, supervisor.Stop, supervisor.Disconnect} {
		events := s.tree.Events(64)
		_, err := s.tree.Kill(Name, how)
		s.must(err)
		ctx, cancel := context.WithTimeout(t.Context(), longEnough)
		for {
			event, err := events.Next(ctx)
			s.must(err)
			if o, is := event.(supervisor.Opened); is && o.Path == Name && o.Generation == uint64(i+2) {
				break
			}
		}
		cancel()
		events.Close()
		if got := s.ask(nc, laptop, uid, ""); got.Outcome != "retired" {
			t.Errorf("%v: answered %+v", how, got)
		}
	}
}

// Whoever does not wait long enough learns what goes on, and joins it later. Nobody
// has to wait: the caller may have gone.
func TestWhatIsBegunGoesOn(t *testing.T) {
	s := newStage(t, newPlane(true))
	nc := s.requester(laptop, uid)
	got := s.ask(nc, laptop, uid, `{"wait_ms":0}`)
	if got.status != "503" || got.Error.Reason != "operation.pending" || got.Error.OpID != ledger.OperationOf(uid) || got.Error.Step != "begun" || !got.Error.Retryable {
		t.Errorf("answered %+v", got)
	}
	s.heard()
	gone := s.requester(laptop, uid)
	s.must(gone.PublishRequest(broker.RetireSubject("acme", laptop, uid), gone.NewRespInbox(), nil))
	s.must(gone.Flush())
	s.heard()
	gone.Close()
	joined := s.later(nc, `{"wait_ms":60000}`)
	s.heard()
	close(s.plane.over)
	if got := <-joined; got.Outcome != "retired" {
		t.Errorf("answered %+v", got)
	}
}

// A question outlives the connection it came on: renewals do not make it fail.
func TestAQuestionOutlivesARenewal(t *testing.T) {
	s := newStage(t, newPlane(true), func(c *broker.Config) { c.StandingLifetime = 4 * time.Second })
	nc := s.requester(laptop, uid)
	s.ask(nc, laptop, uid, `{"wait_ms":0}`)
	s.heard()
	first := s.tree.Custody().Resources()
	if len(first) != 1 {
		t.Fatalf("it has %d connections", len(first))
	}
	answers := s.later(nc, `{"wait_ms":60000}`)
	s.heard()
	select {
	case <-first[0].Ended():
	case <-time.After(longEnough):
		t.Fatal("it is not renewed")
	}
	close(s.plane.over)
	if got := <-answers; got.Outcome != "retired" {
		t.Errorf("answered %+v", got)
	}
	if got := s.ask(nc, laptop, uid, ""); got.Outcome != "retired" {
		t.Errorf("answered %+v", got)
	}
}

// A close does not wait for an operation, and leaves nobody without an answer.
func TestACloseAnswersWhatItHeard(t *testing.T) {
	s := newStage(t, newPlane(true))
	nc := s.requester(laptop, uid)
	s.ask(nc, laptop, uid, `{"wait_ms":0}`)
	s.heard()
	answers := s.later(nc, `{"wait_ms":60000}`)
	s.heard()
	s.must(s.tree.Close(t.Context()))
	if got := <-answers; got.Error.Reason != "operation.pending" || got.Error.OpID != ledger.OperationOf(uid) {
		t.Errorf("answered %+v", got)
	}
	if _, err := nc.Request(broker.RetireSubject("acme", laptop, uid), nil, longEnough); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after the close: %v", err)
	}
}

func TestDescribeOverTheRail(t *testing.T) {
	s := newStage(t, newPlane(true))
	nc := natsdtest.Connect(t, s.space.URL(), s.space.Material, trust.SVC, natsdtest.Everything())
	natsdtest.Eventually(t, "the rail says what it answers", func() error {
		m, err := nc.Request(broker.DescribeSubject("acme"), nil, longEnough)
		if err == nil && (m.Header.Get(micro.ErrorCodeHeader) != "" || !strings.Contains(string(m.Data), `"retire":"cotal.acme.rail.auth.retire.{owner}.{actor}.{uid}"`)) {
			t.Fatalf("%v %s", m.Header, m.Data)
		}
		return err
	})
}
