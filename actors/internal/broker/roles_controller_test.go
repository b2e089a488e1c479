package broker_test

import (
	"slices"
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

// controllerGrants is what a kind may, and what it may not although another may.
type controllerGrants struct {
	kind                  messages.ControllerKind
	publishes, subscribes []string
}

// own is a subject of epoch 2 of the instance.
func own(rest string) string { return broker.ControllerSubject("acme", "runner", instance, 2, rest) }

func controllerTable() []controllerGrants {
	return []controllerGrants{
		{messages.KindSupervisor, []string{own("work.x")}, []string{own("done.>"), own("event.x")}},
		{messages.KindExecutor, []string{own("done.x")}, []string{own("work.>")}},
		{messages.KindServer, []string{own("event.x")}, []string{own("ask.start"), own("ask.stop"), "$SRV.PING", "$SRV.INFO.runner", "$SRV.STATS.runner.x"}},
		{messages.KindRecorder, []string{own("record.x")}, nil},
		{messages.KindLedger, []string{own("ledger.x")}, nil},
		{messages.KindSession, nil, []string{own("session.s1.>")}},
		{messages.KindRequester, []string{broker.RetireSubject("acme", worker, another)}, nil},
	}
}

// controllerUser is a user of a kind, whose key the test makes as a controller would.
func controllerUser(t *testing.T, kind messages.ControllerKind) (broker.ControllerUser, nkeys.KeyPair) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	return broker.ControllerUser{Kind: kind, Endpoint: "runner", Instance: instance, Epoch: 2, User: public, Issued: now, Expires: now.Add(time.Minute),
		Commands: []string{"start", "stop"}, Session: "s1", Behalf: manager, Target: worker, UID: another}, pair
}

// Each kind may exactly what it is for, of its own process and of no other, and never
// what another kind may.
func TestEveryKindOfControllerMayExactlyWhatItsTableSays(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	everyPublish, everySubscribe := []string{own("x"), own("ask.start"), own("session.s1.x"), broker.RetireSubject("acme", manager, another), broker.DescribeSubject("acme"),
		rows + "plane", rows + "ctl.runner." + instance, "_R_.x", "$SRV.PING", "x"}, []string{own(">"), own("ask.>"), own("ask.wreck"), own("record.>"),
		own("ledger.>"), own("session.>"), own("session.s2.>"), broker.RetireSubject("acme", worker, another), "$SRV.>", "$SRV.PING.other", "_R_.>", "cotal.acme.changed.>"}
	for _, epoch := range []uint64{1, 3} { // a process that was superseded, and its successor
		for _, rest := range []string{"work.x", "done.x", "event.x", "record.x", "ledger.x", "ask.start", "session.s1.x"} {
			subject := broker.ControllerSubject("acme", "runner", instance, epoch, rest)
			everyPublish, everySubscribe = append(everyPublish, subject), append(everySubscribe, subject)
		}
	}
	foreign := broker.ControllerSubject("acme", "runner", another, 2, "work.x")
	everyPublish, everySubscribe = append(everyPublish, foreign), append(everySubscribe, foreign)
	for _, g := range controllerTable() {
		everyPublish, everySubscribe = append(everyPublish, g.publishes...), append(everySubscribe, g.subscribes...)
	}
	for _, g := range controllerTable() {
		t.Run(string(g.kind), func(t *testing.T) {
			user, pair := controllerUser(t, g.kind)
			token, err := broker.MintController(space.Material, user)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			nc, err := nats.Connect(space.URL(), nats.UserJWT(func() (string, error) { return token, nil }, pair.Sign), nats.CustomInboxPrefix(user.InboxPrefix()),
				nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { nc.Close(); <-ended })
			for _, subject := range slices.Concat(everyPublish, nobodyPublishes) {
				may := mayPublish
				if strings.HasPrefix(subject, "$SYS.") {
					may = mayAskTheSystem
				}
				if got := may(t, nc, subject); got != slices.Contains(g.publishes, subject) {
					t.Errorf("it can publish %s is %v", subject, got)
				}
			}
			for _, subject := range slices.Concat(everySubscribe, nobodySubscribes) {
				if got := maySubscribe(t, nc, subject); got != slices.Contains(g.subscribes, subject) {
					t.Errorf("it can subscribe %s is %v", subject, got)
				}
			}
			if !maySubscribe(t, nc, user.InboxPrefix()+".x") {
				t.Error("it cannot hear its own inbox")
			}
		})
	}
}

// mayAskTheSystem is mayPublish where the account maps such a subject to nowhere, which is
// what the server then complains of.
func mayAskTheSystem(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	if err := nc.Publish(subject, nil); err != nil {
		t.Fatalf("publish %s: %v", subject, err)
	}
	return !violated(t, nc, `Publish to "authplane.nowhere.`+strings.TrimPrefix(subject, "$SYS.")+`"`)
}

// The same user is the same to the byte, whenever it is signed, and says which process
// it is of.
func TestAControllerIsMintedTheSameAgain(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	for _, g := range controllerTable() {
		user, _ := controllerUser(t, g.kind)
		user.Issued = user.Issued.Add(-10 * time.Second)
		first, err := broker.MintController(space.Material, user)
		if err != nil {
			t.Fatal(err)
		}
		again, err := broker.MintController(space.Material, user)
		if err != nil || first != again {
			t.Errorf("%s: %v, the tokens differ: %v", g.kind, err, first != again)
		}
		claims, err := jwt.DecodeUserClaims(first)
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range []string{"kind:" + string(g.kind), "instance:runner." + instance, "epoch:2"} {
			if !claims.Tags.Contains(tag) {
				t.Errorf("%s has the tags %v", g.kind, claims.Tags)
			}
		}
		if claims.IssuerAccount != space.Material.Account(trust.SVC) || claims.Subject != user.User || claims.IssuedAt != user.Issued.Unix() ||
			claims.Expires != user.Expires.Unix() || !claims.Pub.Deny.Contains("$SYS.>") && !claims.Pub.Deny.Contains(">") || !claims.Sub.Deny.Contains("$SYS.>") {
			t.Errorf("%s is %+v", g.kind, claims)
		}
		if problems := (jwt.ValidationResults{}); !func() bool { claims.Validate(&problems); return problems.IsEmpty() }() {
			t.Errorf("%s: %v", g.kind, problems.Issues)
		}
	}
}

func TestNoControllerIsMintedThatCannotBe(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	for what, change := range map[string]func(*broker.ControllerUser){
		"no such kind":           func(u *broker.ControllerUser) { u.Kind = "driver" },
		"an endpoint of two":     func(u *broker.ControllerUser) { u.Endpoint = "a.b" },
		"no instance":            func(u *broker.ControllerUser) { u.Instance = "i" },
		"a seed":                 func(u *broker.ControllerUser) { u.User = "S" + u.User[1:] },
		"a wildcard command":     func(u *broker.ControllerUser) { u.Commands = []string{">"} },
		"no command":             func(u *broker.ControllerUser) { u.Commands = nil },
		"no end":                 func(u *broker.ControllerUser) { u.Expires = u.Issued },
		"a long life":            func(u *broker.ControllerUser) { u.Expires = u.Issued.Add(broker.MaxControllerLifetime + time.Second) },
		"half a second":          func(u *broker.ControllerUser) { u.Expires = u.Expires.Add(time.Second / 2) },
		"a session of wildcards": func(u *broker.ControllerUser) { u.Kind, u.Session = messages.KindSession, "*" },
		"a retirement of nobody": func(u *broker.ControllerUser) { u.Kind, u.Target = messages.KindRequester, messages.Principal{} },
		"a long retirement": func(u *broker.ControllerUser) {
			u.Kind, u.Expires = messages.KindRequester, u.Issued.Add(broker.RequesterLifetime+time.Second)
		},
	} {
		user, _ := controllerUser(t, messages.KindServer)
		change(&user)
		if token, err := broker.MintController(space.Material, user); err == nil || token != "" {
			t.Errorf("%s is minted", what)
		}
	}
}

// A receipt's key is the same for every process of the space, is another one in another
// space, and is not what it derives from.
func TestTheKeyOfReceipts(t *testing.T) {
	one, other := natsdtest.NewSpace(t, "acme"), natsdtest.NewSpace(t, "acme")
	key := one.Material.ReceiptKey().Reveal()
	if len(key) != 32 || key != one.Material.ReceiptKey().Reveal() || key == other.Material.ReceiptKey().Reveal() ||
		strings.Contains(one.Material.OwnerSecret.Reveal(), key) {
		t.Error("the key is not one of its own")
	}
}
