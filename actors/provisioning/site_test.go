package provisioning

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

const (
	life = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	next = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func footprintOf(uid string) messages.Footprint {
	return messages.Footprint{
		Consumers: []messages.FootprintConsumer{
			{Stream: "DM", Name: "one-" + uid, Filters: []string{"dm.x.>"}, Ack: "explicit", Deliver: "new", AckWait: 7 * time.Second, MaxDeliver: 3, MaxAckPending: 9},
			{Stream: "DM", Name: "two-" + uid, Filters: []string{"dm.a", "dm.b"}, Ack: "none", Deliver: "all"},
			{Stream: "DM", Name: "all-" + uid, Ack: "all", Deliver: "last"},
		},
		Rows: []messages.FootprintRow{{Bucket: "acl", Key: "x." + uid, Value: "v"}},
	}
}

// account is DATA with the places that footprints need.
type account struct {
	*testing.T
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	dialer *broker.Dialer
}

func openAccount(t *testing.T) *account {
	space := natsdtest.NewSpace(t, "acme")
	js, err := jetstream.New(natsdtest.Connect(t, space.URL(), space.Material, trust.DATA, natsdtest.Everything()))
	must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "DM", Subjects: []string{"dm.>"}})
	must(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "acl"})
	must(t, err)
	d, err := broker.NewDialer(broker.Config{URL: space.URL(), Space: "acme", Material: space.Material})
	must(t, err)
	return &account{t, js, kv, d}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site opens a connection of a role, for an incarnation, until the test ends.
func (a *account) site(role broker.Role, uid string) site {
	a.Helper()
	conn, err := a.dialer.Dial(a.Context(), role, func(*broker.Conn) error { return nil })
	must(a.T, err)
	a.Cleanup(func() { conn.Sever(); <-conn.Ended() })
	return site{conn.NATS(), uid}
}

// looks asks for the presence of each part, in order.
func (a *account) looks(s site, f messages.Footprint, want footprint.Presence) {
	a.Helper()
	for _, c := range f.Consumers {
		if there, err := s.Consumer(a.Context(), c); err != nil || there != want {
			a.Errorf("%s: %d, %v", c.Name, there, err)
		}
	}
	for _, r := range f.Rows {
		if there, err := s.Row(a.Context(), r); err != nil || there != want {
			a.Errorf("%s: %d, %v", r.Key, there, err)
		}
	}
}

func (a *account) makes(s site, f messages.Footprint, want error) {
	a.Helper()
	for _, c := range f.Consumers {
		if err := s.MakeConsumer(a.Context(), c); !errors.Is(err, want) {
			a.Errorf("%s: %v", c.Name, err)
		}
	}
	for _, r := range f.Rows {
		if err := s.MakeRow(a.Context(), r); !errors.Is(err, want) {
			a.Errorf("%s: %v", r.Key, err)
		}
	}
}

func (a *account) removes(s site, f messages.Footprint, made bool) {
	a.Helper()
	for _, c := range f.Consumers {
		must(a.T, s.RemoveConsumer(a.Context(), c, made))
	}
	for _, r := range f.Rows {
		must(a.T, s.RemoveRow(a.Context(), r, made))
	}
}

// Over the connections as they are, a footprint is made as it is configured, made again
// without harm, and removed; so is what was never made.
func TestAFootprintComesAndGoes(t *testing.T) {
	a := openAccount(t)
	f := footprintOf(life)
	maker, remover := a.site(broker.Provisioner(f), life), a.site(broker.Deprovisioner(f), life)
	a.looks(maker, f, footprint.Absent)
	for range 2 {
		a.makes(maker, f, nil)
		a.looks(maker, f, footprint.Ours)
	}
	c, err := a.js.Consumer(t.Context(), "DM", "one-"+life)
	must(t, err)
	got := c.CachedInfo().Config
	if got.FilterSubject != "dm.x.>" || got.AckWait != 7*time.Second || got.MaxDeliver != 3 || got.MaxAckPending != 9 || got.DeliverPolicy != jetstream.DeliverNewPolicy ||
		got.AckPolicy != jetstream.AckExplicitPolicy || got.Durable != "one-"+life || got.InactiveThreshold != 0 {
		t.Errorf("it is %+v", got)
	}
	for range 2 {
		a.removes(remover, f, true)
	}
	if _, err := a.kv.Get(t.Context(), "x."+life); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("the row: %v", err)
	}
	if _, err := a.js.Consumer(t.Context(), "DM", "two-"+life); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Errorf("a consumer: %v", err)
	}
	// A row that is gone cannot come back by a write that was under way, nor one that was
	// never there.
	other := footprintOf(next)
	a.removes(a.site(broker.Deprovisioner(other), next), other, false)
	for _, late := range []site{maker, a.site(broker.Provisioner(other), next)} {
		row := messages.FootprintRow{Bucket: "acl", Key: "x." + late.uid, Value: "v"}
		if err := late.MakeRow(t.Context(), row); !errors.Is(err, footprint.ErrOther) {
			t.Errorf("%s again: %v", row.Key, err)
		}
	}
}

// What another made is told from ours, used if it is as it has to be, and never removed
// unless it is known to be ours.
func TestWhatAnotherMadeIsLeft(t *testing.T) {
	a := openAccount(t)
	f := footprintOf(life)
	theirs, mine := a.site(broker.Provisioner(f), next), a.site(broker.Provisioner(f), life)
	a.makes(theirs, f, nil)
	a.looks(mine, f, footprint.Alike)
	a.makes(mine, f, footprint.ErrOther)
	remover := a.site(broker.Deprovisioner(f), life)
	a.removes(remover, f, false)
	a.looks(mine, f, footprint.Alike)
	changed := footprintOf(life)
	changed.Consumers[0].MaxDeliver, changed.Consumers[1].Filters, changed.Consumers[2].Ack = 4, []string{"dm.a", "dm.c"}, "none"
	changed.Rows[0].Value = "w"
	a.looks(mine, changed, footprint.Other)
	a.makes(mine, changed, footprint.ErrOther)
	// Ours stays ours when somebody writes over it, if it is known to have been made.
	a.removes(remover, f, true)
	if _, err := a.kv.Get(t.Context(), "x."+life); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("the row: %v", err)
	}
}

// What can never be is refused with what is wrong; what passes is no refusal.
func TestPlacesThatAreNotThere(t *testing.T) {
	a := openAccount(t)
	_, err := a.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KV_led", Subjects: []string{"$KV.led.>"}, MaxMsgsPerSubject: 1})
	must(t, err)
	f := messages.Footprint{
		Consumers: []messages.FootprintConsumer{{Stream: "NONE", Name: "c-" + life}},
		Rows:      []messages.FootprintRow{{Bucket: "none", Key: "x." + life}, {Bucket: "led", Key: "x." + life}},
	}
	s := a.site(broker.Provisioner(f), life)
	for name, do := range map[string]func(context.Context) error{
		"no stream":     func(ctx context.Context) error { _, err := s.Consumer(ctx, f.Consumers[0]); return err },
		"no stream now": func(ctx context.Context) error { return s.MakeConsumer(ctx, f.Consumers[0]) },
		"no bucket":     func(ctx context.Context) error { _, err := s.Row(ctx, f.Rows[0]); return err },
		"no bucket now": func(ctx context.Context) error { return s.MakeRow(ctx, f.Rows[0]) },
		"not read so":   func(ctx context.Context) error { _, err := s.Row(ctx, f.Rows[1]); return err },
	} {
		if err := do(t.Context()); !errors.Is(err, messages.FootprintRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Where the place is gone, so is what was in it.
	a.removes(a.site(broker.Deprovisioner(messages.Footprint{Consumers: f.Consumers, Rows: f.Rows[:1]}), life),
		messages.Footprint{Consumers: f.Consumers, Rows: f.Rows[:1]}, true)
	ended, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Row(ended, f.Rows[1]); !errors.Is(err, messages.BrokerAway) {
		t.Errorf("nobody waits: %v", err)
	}
}
