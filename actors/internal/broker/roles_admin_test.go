package broker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

const railOwner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"

var (
	manager = messages.Principal{Owner: railOwner, Actor: "manager"}
	worker  = messages.Principal{Owner: railOwner, Actor: "worker"}
)

func TestTheRailMayExactlyWhatItsTableSays(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	c := dial(t, dialer(t, space), broker.Admin())
	if c.Label() != "cotal:auth-admin:acme" {
		t.Errorf("its label is %s", c.Label())
	}
	may := func(can func(*testing.T, *nats.Conn, string) bool, want bool, subjects ...string) {
		t.Helper()
		for _, subject := range subjects {
			if can(t, c.NATS(), subject) != want {
				t.Errorf("%s: it can is %v", subject, !want)
			}
		}
	}
	retire := broker.RetireSubject("acme", worker, another)
	may(mayPublish, true, "_R_.x", "_R_.x.y")
	may(mayPublish, false, append([]string{
		rows + "plane", rows + "head.u_x.laptop", rows + "asked." + instance, rows + "beat." + instance, recorded + "x",
		"$JS.API.STREAM.MSG.GET." + stream, "$JS.API.STREAM.INFO." + stream, "$JS.API.INFO", "$JS.API.CONSUMER.CREATE." + stream,
		retire, broker.DescribeSubject("acme"), "$SRV.PING", "cotal.acme.changed.plane", "_R_", "x",
	}, nobodyPublishes...)...)
	queue := " " + broker.AdminService
	may(maySubscribe, true, broker.AnyRetireSubject("acme")+queue, broker.DescribeSubject("acme")+queue, retire+queue,
		"$SRV.PING", "$SRV.INFO.auth", "$SRV.STATS.auth.x", "_INBOX_"+c.ID()+".x")
	may(maySubscribe, false, append([]string{
		broker.AnyRetireSubject("acme"), broker.AnyRetireSubject("acme") + " other", broker.AnyRetireSubject("acme2") + queue, "cotal.acme.rail.>" + queue,
		"cotal.acme.rail.auth.retire.>" + queue, "$SRV.>", "$SRV.PING.other", "_R_.>", "cotal.acme.changed.>", rows + ">",
	}, nobodySubscribes...)...)
}

// requester connects as somebody who may ask for one retirement.
func requester(t *testing.T, space *natsdtest.Space, target messages.Principal, uid string) *nats.Conn {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	ask := broker.RetirementRequester{Behalf: manager, Target: target, UID: uid, User: public, Expires: time.Now().Add(time.Minute)}
	token, err := broker.MintRetirementRequester(space.Material, ask)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	nc, err := nats.Connect(space.URL(), nats.UserJWT(func() (string, error) { return token, nil }, pair.Sign), nats.CustomInboxPrefix(ask.InboxPrefix()),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close(); <-ended })
	return nc
}

// Whoever may ask for one retirement can ask for no other, nor anything else.
func TestWhoAsksForARetirementMayAskForThatOne(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	own := broker.RetireSubject("acme", worker, another)
	var heard string
	answered := serveRail(t, space, func(m *nats.Msg) { heard = m.Subject + m.Header.Get("Nats-Request-Info") })
	nc := requester(t, space, worker, another)
	if reply, err := nc.Request(own, nil, longEnough); err != nil || string(reply.Data) != lie {
		t.Fatalf("it cannot ask: %v", err)
	}
	<-answered
	if !strings.HasPrefix(heard, own) || !strings.Contains(heard, `"name_tag":"cotal:retire:acme:`+manager.String()+`"`) ||
		!strings.Contains(heard, space.Material.Account(trust.SVC)) {
		t.Errorf("the rail heard %s", heard)
	}
	for _, subject := range []string{
		broker.RetireSubject("acme", manager, another), broker.RetireSubject("acme", worker, instance), broker.RetireSubject("acme2", worker, another),
		broker.DescribeSubject("acme"), "cotal.acme.rail.other", own + ".more", rows + "plane", "_R_.x", "x",
	} {
		if mayPublish(t, nc, subject) {
			t.Errorf("it can publish %s", subject)
		}
	}
	for _, subject := range []string{own, own + " auth", "_INBOX.>", "_INBOX_" + another + ".x", ">", "_R_.>", "$SYS.>"} {
		if maySubscribe(t, nc, subject) {
			t.Errorf("it can subscribe %s", subject)
		}
	}
}

// A request cannot say itself who sent it.
func TestTheServerSaysWhoAsks(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	infos := make(chan []string, 16) // one a request
	serveRail(t, space, func(m *nats.Msg) { infos <- m.Header["Nats-Request-Info"] })
	nc := requester(t, space, worker, another)
	forged := `{"acc":"` + space.Material.Account(trust.CTRL) + `","name_tag":"cotal:retire:acme:` + worker.String() + `"}`
	for name, header := range map[string]nats.Header{
		"none":  nil,
		"one":   {"Nats-Request-Info": {forged}},
		"two":   {"Nats-Request-Info": {forged, forged}},
		"first": {"Nats-Request-Info": {forged}, "A": {"b"}},
		"last":  {"A": {"b"}, "Nats-Request-Info": {forged}},
	} {
		if _, err := nc.RequestMsg(&nats.Msg{Subject: broker.RetireSubject("acme", worker, another), Header: header}, longEnough); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		told := <-infos
		var info struct {
			Account string `json:"acc"`
			Name    string `json:"name_tag"`
		}
		switch {
		case name == "two" && len(told) > 1: // the rail takes one word only
		case len(told) != 1 || json.Unmarshal([]byte(told[0]), &info) != nil:
			t.Errorf("%s: told %q", name, told)
		case info.Account != space.Material.Account(trust.SVC) || info.Name != "cotal:retire:acme:"+manager.String():
			t.Errorf("%s: told %+v", name, info)
		}
	}
}

// An answer goes where the server says, also from another connection than the one
// that heard the question, and reaches nobody else.
func TestTheRailAnswersAcrossItsRenewals(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	old, next := dial(t, d, broker.Admin()), dial(t, d, broker.Admin())
	questions, err := old.NATS().QueueSubscribeSync(broker.AnyRetireSubject("acme"), broker.AdminService)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.NATS().Flush(); err != nil {
		t.Fatal(err)
	}
	nc := requester(t, space, worker, another)
	inbox := nc.NewRespInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest(broker.RetireSubject("acme", worker, another), inbox, nil); err != nil {
		t.Fatal(err)
	}
	question, err := questions.NextMsg(longEnough)
	if err != nil {
		t.Fatal(err)
	}
	old.Sever()
	await(t, old.Ended(), "the old connection ends")
	if err := errors.Join(next.NATS().Publish(question.Reply, []byte("done")), next.NATS().Flush()); err != nil {
		t.Fatal(err)
	}
	if m, err := answers.NextMsg(longEnough); err != nil || string(m.Data) != "done" {
		t.Errorf("answered %v, %v", m, err)
	}
}

func TestWhoIsNotMinted(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	user, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	good := broker.RetirementRequester{Behalf: manager, Target: worker, UID: another, User: user, Expires: time.Now().Add(broker.RequesterLifetime)}
	token, err := broker.MintRetirementRequester(space.Material, good)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil || claims.Expires == 0 || claims.IssuerAccount != space.Material.Account(trust.SVC) || claims.Resp != nil {
		t.Errorf("minted %+v, %v", claims, err)
	}
	for name, change := range map[string]func(*broker.RetirementRequester){
		"on behalf of nobody":   func(r *broker.RetirementRequester) { r.Behalf = messages.Principal{} },
		"a wildcard":            func(r *broker.RetirementRequester) { r.Target.Actor = "*" },
		"a target of wildcards": func(r *broker.RetirementRequester) { r.Target.Owner = ">" },
		"every incarnation":     func(r *broker.RetirementRequester) { r.UID = "*" },
		"no user":               func(r *broker.RetirementRequester) { r.User = "x" },
		"an account":            func(r *broker.RetirementRequester) { r.User = space.Material.Account(trust.SVC) },
		"for ever":              func(r *broker.RetirementRequester) { r.Expires = time.Time{} },
		"for long":              func(r *broker.RetirementRequester) { r.Expires = time.Now().Add(2 * broker.RequesterLifetime) },
		"in the past":           func(r *broker.RetirementRequester) { r.Expires = time.Now().Add(-time.Second) },
	} {
		r := good
		change(&r)
		if _, err := broker.MintRetirementRequester(space.Material, r); err == nil {
			t.Errorf("%s: minted", name)
		}
	}
}
