package broker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

// footprintOf is what an incarnation has of its own: a consumer with one filter, one
// with two, and a row.
func footprintOf(uid string) messages.Footprint {
	return messages.Footprint{
		Consumers: []messages.FootprintConsumer{{Stream: "DM", Name: "dm-" + uid, Filters: []string{"dm.x.>"}}, {Stream: "DLV", Name: "dlv-" + uid, Filters: []string{"a", "b"}}},
		Rows:      []messages.FootprintRow{{Bucket: "acl", Key: "x." + uid}},
	}
}

// TestProvisioningMayTouchOneFootprint holds both roles to the names of one incarnation,
// and each to its half of the work.
func TestProvisioningMayTouchOneFootprint(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	rowsOf := func(uid string) []string {
		return []string{"$KV.acl.x." + uid, "$JS.API.DIRECT.GET.KV_acl.$KV.acl.x." + uid}
	}
	making := func(uid string) []string {
		return []string{"$JS.API.CONSUMER.CREATE.DM.dm-" + uid + ".dm.x.>", "$JS.API.CONSUMER.CREATE.DLV.dlv-" + uid}
	}
	removing := func(uid string) []string {
		return []string{"$JS.API.CONSUMER.DELETE.DM.dm-" + uid, "$JS.API.CONSUMER.DELETE.DLV.dlv-" + uid}
	}
	seeing := func(uid string) []string {
		return []string{"$JS.API.CONSUMER.INFO.DM.dm-" + uid, "$JS.API.CONSUMER.INFO.DLV.dlv-" + uid}
	}
	// What DATA asks the system for is refused under another name; that is tested elsewhere.
	nobody := slices.Concat(slices.DeleteFunc(slices.Clone(nobodyPublishes), func(s string) bool { return strings.HasPrefix(s, "$SYS.") }), making(another), removing(another), seeing(another), rowsOf(another), altering("DM"), altering("KV_acl"), []string{
		"$JS.API.CONSUMER.CREATE.DM", "$JS.API.CONSUMER.CREATE.DM.dm-" + instance, "$JS.API.CONSUMER.CREATE.DM.dm-" + instance + ".other.>",
		"$JS.API.CONSUMER.CREATE.DM.dm-" + instance + ".>", "$JS.API.CONSUMER.DURABLE.CREATE.DM.dm-" + instance, "$JS.API.CONSUMER.CREATE.DLV.dm-" + instance,
		"$JS.API.CONSUMER.MSG.NEXT.DM.dm-" + instance, "$JS.ACK.DM.dm-" + instance + ".1.1.1.1.1", "$JS.API.CONSUMER.NAMES.DM",
		"$JS.API.STREAM.MSG.GET.DM", "$JS.API.STREAM.MSG.GET.KV_acl", "$JS.API.DIRECT.GET.KV_acl", "$JS.API.STREAM.INFO.DM", "$JS.API.STREAM.CREATE.mine", "$JS.API.INFO",
		"$KV.acl.x", "$KV.acl.x." + instance + ".more", "$KV.other.x." + instance, "$KV.acl.>", "dm.x.y", "x",
	})
	for _, c := range []struct {
		role       broker.Role
		label      string
		can, never []string
	}{
		{broker.Provisioner(footprintOf(instance)), "cotal:provisioner:acme", making(instance), removing(instance)},
		{broker.Deprovisioner(footprintOf(instance)), "cotal:deprovisioner:acme", removing(instance), making(instance)},
		{broker.Provisioner(messages.Footprint{}), "cotal:provisioner:acme", nil, slices.Concat(making(instance), rowsOf(instance), seeing(instance))},
	} {
		conn := dial(t, d, c.role)
		if conn.Label() != c.label || conn.NATS().Opts.AllowReconnect {
			t.Errorf("%s is %s, and reconnects: %v", c.label, conn.Label(), conn.NATS().Opts.AllowReconnect)
		}
		can := c.can
		if can != nil {
			can = slices.Concat(can, seeing(instance), rowsOf(instance), []string{"$JS.API.STREAM.INFO.KV_acl"})
		}
		for _, subject := range can {
			if !mayPublish(t, conn.NATS(), subject) {
				t.Errorf("%s cannot publish %s", c.label, subject)
			}
		}
		for _, subject := range slices.Concat(c.never, nobody) {
			if mayPublish(t, conn.NATS(), subject) {
				t.Errorf("%s can publish %s", c.label, subject)
			}
		}
		if !maySubscribe(t, conn.NATS(), "_INBOX_"+conn.ID()+".x") {
			t.Errorf("%s hears no answer", c.label)
		}
		for _, subject := range append(nobodySubscribes, "dm.x.>", "$KV.acl.>", "$JS.EVENT.>") {
			if maySubscribe(t, conn.NATS(), subject) {
				t.Errorf("%s can subscribe to %s", c.label, subject)
			}
		}
	}
}

// The writer keeps the journal of every footprint.
func TestTheWriterKeepsTheJournal(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	writer := dial(t, dialer(t, space), broker.Writer(instance))
	for subject, want := range map[string]bool{rows + "prov.u_x.bot.uid.hash": true, rows + "prov.u_x.bot.uid": false, rows + "prov": false} {
		if mayPublish(t, writer.NATS(), subject) != want {
			t.Errorf("%s: it can is %v", subject, !want)
		}
	}
}
