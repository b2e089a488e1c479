package broker_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// grants is what one role can do, and what it must not. {own} stands for the
// connection's inbox.
type grants struct {
	role                  broker.Role
	label                 string
	publishes, subscribes []string
	neverPublishes, never []string
}

const (
	stream = "KV_cotal_authority_acme"
	rows   = "$KV.cotal_authority_acme."
)

func roleTable(m *trust.Material) []grants {
	data, ctrl, auth := m.Account(trust.DATA), m.Account(trust.CTRL), m.Account(trust.AUTH)
	svc, sys := m.Account(trust.SVC), m.Account(trust.SYS)
	connz := func(account string) string { return "$SYS.REQ.ACCOUNT." + account + ".CONNZ" }
	return []grants{
		{
			role: broker.Writer(instance), label: "cotal:auth-mint:acme",
			publishes: []string{
				"$JS.API.STREAM.CREATE." + stream, "$JS.API.STREAM.INFO." + stream, "$JS.API.STREAM.MSG.GET." + stream,
				rows + "head.u_x.laptop", rows + "uid.x", rows + "cred.x.c", rows + "bysrc.k.h.x.c", rows + "srcgate.k.h",
				rows + "grant.u_x.laptop", rows + "asked." + instance, rows + "roster", rows + "beat." + instance,
			},
			neverPublishes: []string{
				rows + "plane", rows + "owed", rows + "op.x", rows + "frontier.x", rows + "inst.e.i", rows + "icred.e.i.c", rows + "session.x",
				rows + "roster.x", rows + "beat." + another, rows + "asked." + another, rows + "head.u_x", rows + "head.u_x.laptop.more",
				"$JS.API.STREAM.UPDATE." + stream, "$JS.API.STREAM.PURGE." + stream,
				"$JS.API.CONSUMER.CREATE." + stream, "$JS.API.CONSUMER.CREATE." + stream + ".c.x", "$JS.API.CONSUMER.DURABLE.CREATE." + stream + ".c",
				"$JS.API.STREAM.CREATE.mine", "$JS.API.STREAM.CREATE.KV_cotal_records_acme", "$JS.API.DIRECT.GET." + stream, "$JS.API.INFO",
				"$KV.cotal_records_acme.x", "cotal.acme.changed.head", "cotal.acme.rail.auth",
			},
			never: []string{rows + ">", "cotal.acme.changed.>"},
		},
		{
			role: broker.Reader(instance), label: "cotal:auth-reader:acme",
			publishes:  []string{"$JS.API.STREAM.INFO." + stream, "$JS.API.STREAM.MSG.GET." + stream, rows + "beat." + instance},
			subscribes: []string{"cotal.acme.changed.>", "cotal.acme.changed.head.u_x.laptop"},
			neverPublishes: []string{
				rows + "head.u_x.laptop", rows + "grant.u_x.laptop", rows + "beat." + another, rows + "plane", "$JS.API.STREAM.CREATE." + stream,
				"$JS.API.CONSUMER.CREATE." + stream, "$JS.API.DIRECT.GET." + stream, "cotal.acme.changed.head",
			},
			never: []string{rows + ">", "cotal.acme.>"},
		},
		{
			role: broker.Callout(1), label: "cotal:auth-service:acme",
			subscribes:     []string{broker.CalloutSubject + " " + broker.CalloutQueue},
			neverPublishes: []string{broker.CalloutSubject, "cotal.acme.presence." + instance, "cotal.acme.settled.op", "x"},
			never:          []string{broker.CalloutSubject, broker.CalloutSubject + " others", "cotal.acme.presence.*"},
		},
		{
			role: broker.PlainCallout(2), label: "cotal:auth-service:acme",
			subscribes:     []string{broker.CalloutSubject},
			neverPublishes: []string{broker.CalloutSubject, "x"},
			never:          []string{"cotal.acme.presence.*"},
		},
		{
			role: broker.Presence(instance), label: "cotal:auth-presence:acme",
			publishes:      []string{"cotal.acme.presence." + instance, "cotal.acme.settle.op", "cotal.acme.settled.op"},
			subscribes:     []string{"cotal.acme.presence.*", "cotal.acme.settle.*", "cotal.acme.settled.*"},
			neverPublishes: []string{"cotal.acme.presence." + another, broker.CalloutSubject},
			never:          []string{broker.CalloutSubject, broker.CalloutSubject + " " + broker.CalloutQueue},
		},
		{
			role: broker.Observer(), label: "cotal:auth-observer:acme",
			publishes:      []string{connz(data), connz(ctrl), connz(auth), "$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.VARZ"},
			neverPublishes: []string{connz(svc), connz(sys), "$SYS.REQ.ACCOUNT." + data + ".SUBSZ", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.x.KICK", "$SYS.REQ.CLAIMS.UPDATE"},
			never:          []string{"$SYS.ACCOUNT.>"},
		},
		{
			role: broker.Evictor(), label: "cotal:auth-evictor:acme",
			publishes:      []string{"$SYS.REQ.SERVER.x.KICK"},
			neverPublishes: []string{connz(data), "$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.x.RELOAD", "$SYS.REQ.SERVER.x.LDM", "$SYS.REQ.CLAIMS.DELETE"},
			never:          []string{"$SYS.ACCOUNT.>"},
		},
	}
}

// Of no role's business at all.
var (
	nobodyPublishes  = []string{"$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "_INBOX.x", "_INBOX_" + another + ".x", "$JS.API.STREAM.DELETE." + stream, "$JS.API.STREAM.MSG.DELETE." + stream}
	nobodySubscribes = []string{">", "$SYS.>", "_INBOX.>", "_INBOX_" + another + ".>", "$KV.>", "$JS.>"}
)

func TestEveryRoleMayExactlyWhatItsTableSays(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	for _, g := range roleTable(space.Material) {
		t.Run(g.label, func(t *testing.T) {
			c := dial(t, d, g.role)
			if c.Label() != g.label {
				t.Errorf("its label is %s", c.Label())
			}
			nc := c.NATS()
			for _, subject := range g.publishes {
				if !mayPublish(t, nc, subject) {
					t.Errorf("it cannot publish %s", subject)
				}
			}
			for _, subject := range append(g.neverPublishes, nobodyPublishes...) {
				if mayPublish(t, nc, subject) {
					t.Errorf("it can publish %s", subject)
				}
			}
			for _, subject := range append(g.subscribes, "_INBOX_"+c.ID()+".x") {
				if !maySubscribe(t, nc, subject) {
					t.Errorf("it cannot subscribe to %s", subject)
				}
			}
			for _, subject := range append(g.never, nobodySubscribes...) {
				if maySubscribe(t, nc, subject) {
					t.Errorf("it can subscribe to %s", subject)
				}
			}
		})
	}
}

func TestWriterAndReaderCanDoTheirWork(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	writer, reader := dial(t, d, broker.Writer(instance)), dial(t, d, broker.Reader(instance))

	js, err := jetstream.New(writer.NATS())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), authorityConfig("acme")); err != nil {
		t.Fatalf("the writer cannot make the stream: %v", err)
	}
	nudges, err := reader.NATS().SubscribeSync(broker.ChangedSubject("acme"))
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.NATS().FlushTimeout(longEnough); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), rows+"uid.x", []byte("{}"), jetstream.WithExpectLastSequencePerSubject(0)); err != nil {
		t.Fatalf("the writer cannot write: %v", err)
	}
	nudge, err := nudges.NextMsg(longEnough)
	if err != nil {
		t.Fatalf("the reader hears no nudge: %v", err)
	}
	if len(nudge.Data) > 0 || !strings.HasPrefix(nudge.Subject, "cotal.acme.changed.") {
		t.Errorf("the nudge is %s with %d bytes", nudge.Subject, len(nudge.Data))
	}

	reads, err := jetstream.New(reader.NATS())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := reads.Stream(t.Context(), broker.AuthorityStream("acme"))
	if err != nil {
		t.Fatalf("the reader cannot read about the stream: %v", err)
	}
	if msg, err := stream.GetLastMsgForSubject(t.Context(), rows+"uid.x"); err != nil || string(msg.Data) != "{}" {
		t.Errorf("the reader reads %v, %v", msg, err)
	}
	if _, err := reads.Publish(t.Context(), rows+"beat."+instance, []byte("1")); err != nil {
		t.Errorf("the reader cannot beat: %v", err)
	}
}

func TestPresenceHearsItself(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	c := dial(t, dialer(t, space), broker.Presence(instance))
	sub, err := c.NATS().SubscribeSync("cotal.acme.presence.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.NATS().Publish(broker.PresenceSubject("acme", instance), []byte("here")); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.NextMsg(longEnough); err != nil {
		t.Errorf("it does not hear itself: %v", err)
	}
}

func TestObserverSeesAndEvictorKicks(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	observer, evictor, victim := dial(t, d, broker.Observer()), dial(t, d, broker.Evictor()), dial(t, d, broker.Reader(instance))

	reply, err := observer.NATS().Request("$SYS.REQ.ACCOUNT."+space.Material.Account(trust.CTRL)+".CONNZ", []byte(`{"auth":true}`), longEnough)
	if err != nil {
		t.Fatalf("the observer gets no answer: %v", err)
	}
	if !strings.Contains(string(reply.Data), victim.Label()) {
		t.Errorf("the reader is not on the list")
	}
	status := victim.NATS().StatusChanged(nats.RECONNECTING)
	body := []byte(`{"cid":` + strconv.FormatUint(victim.ClientID(), 10) + `}`)
	if _, err := evictor.NATS().Request("$SYS.REQ.SERVER."+victim.ServerID()+".KICK", body, longEnough); err != nil {
		t.Fatalf("the kick is not answered: %v", err)
	}
	select {
	case <-status:
	case <-time.After(longEnough):
		t.Error("the kicked connection notices nothing")
	}
}

func TestRolesRefuseNamesThatAreNone(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	for _, bad := range []string{">", "*", "x.>", "a b", strings.Repeat("a", 40)} {
		if _, err := d.Dial(t.Context(), broker.Writer(bad), newCustody(t).keep); err == nil {
			t.Errorf("an instance called %q was let through", bad)
		}
	}
}
