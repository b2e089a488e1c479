package broker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// ownConnections is where an account asks for its own connections.
const ownConnections = "$SYS.REQ.ACCOUNT.PING.CONNZ"

// Who observes CTRL from within sees CTRL, of all its servers, and can do nothing else.
func TestTheOwnObserverSeesItsAccountAndDoesNothing(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	own, reader, callout := dial(t, d, broker.OwnObserver()), dial(t, d, broker.Reader(instance)), dial(t, d, broker.Callout(1))
	if own.Label() != "cotal:auth-observer:acme" {
		t.Errorf("its label is %s", own.Label())
	}
	reply, err := own.NATS().Request(ownConnections, []byte(`{"auth":true}`), longEnough)
	if err != nil {
		t.Fatal(err)
	}
	if page := string(reply.Data); !strings.Contains(page, reader.Label()) || strings.Contains(page, callout.Label()) {
		t.Errorf("it sees %s", page)
	}
	connz := func(a trust.Account) string { return "$SYS.REQ.ACCOUNT." + space.Material.Account(a) + ".CONNZ" }
	forbidden := []string{
		connz(trust.CTRL), connz(trust.DATA), connz(trust.AUTH), connz(trust.SYS), "$SYS.REQ.ACCOUNT.PING.SUBSZ", "$SYS.REQ.ACCOUNT.PING.STATZ",
		"$SYS.REQ.ACCOUNT.PING.CONNZ.more", "$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.x.KICK",
		rows + "plane", rows + "head.u_x.laptop", rows + "beat." + instance, "$JS.API.INFO", "$JS.API.STREAM.INFO." + stream,
		"$JS.API.STREAM.MSG.GET." + stream, "cotal.acme.changed.head", "cotal.acme.rail.auth", "_R_.x", broker.CalloutSubject,
	}
	never := slices.DeleteFunc(slices.Clone(nobodyPublishes), func(s string) bool { return s == ownConnections })
	for _, subject := range append(forbidden, never...) {
		if mayPublish(t, own.NATS(), subject) {
			t.Errorf("it can publish %s", subject)
		}
	}
	for _, subject := range append([]string{rows + ">", "cotal.acme.>", "_R_.>"}, nobodySubscribes...) {
		if maySubscribe(t, own.NATS(), subject) {
			t.Errorf("it can subscribe to %s", subject)
		}
	}
	if !maySubscribe(t, own.NATS(), "_INBOX_"+own.ID()+".x") {
		t.Error("it cannot hear its inbox")
	}
}

// Without keys of SYS nobody dials into it.
func TestWithoutSystemNobodyIsDialledInSYS(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	m, err := trust.LoadWithoutSystem(t.Context(), trust.Directory(trust.SecretsDir(space.Dir)), space.Name)
	if err != nil {
		t.Fatal(err)
	}
	d := dialer(t, space, func(c *broker.Config) { c.Material = m })
	for _, role := range []broker.Role{broker.Observer(), broker.Evictor()} {
		if _, err := d.Dial(t.Context(), role, newCustody(t).keep); err == nil {
			t.Error("it was dialled")
		}
	}
	dial(t, d, broker.OwnObserver())
}
