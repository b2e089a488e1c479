package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	rowstream "github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

const (
	records  = "KV_cotal_records_acme"
	recorded = "$KV.cotal_records_acme."
)

var oneMoment = time.UnixMilli(1)

// makingConsumers is every subject by which somebody makes, reads or ends a
// consumer of a stream under a name.
func makingConsumers(of, name string) []string {
	return []string{
		"$JS.API.CONSUMER.CREATE." + of, "$JS.API.CONSUMER.CREATE." + of + "." + name, "$JS.API.CONSUMER.CREATE." + of + "." + name + ".x",
		"$JS.API.CONSUMER.DURABLE.CREATE." + of + "." + name, "$JS.API.CONSUMER.INFO." + of + "." + name,
		"$JS.API.CONSUMER.MSG.NEXT." + of + "." + name, "$JS.API.CONSUMER.DELETE." + of + "." + name, "$JS.API.CONSUMER.NAMES." + of,
	}
}

// altering is what nobody of ours does to a stream.
func altering(of string) []string {
	return []string{"$JS.API.STREAM.UPDATE." + of, "$JS.API.STREAM.PURGE." + of, "$JS.API.STREAM.DELETE." + of,
		"$JS.API.STREAM.MSG.DELETE." + of, "$JS.API.DIRECT.GET." + of}
}

// planeTable are the roles of the plane.
func planeTable() []grants {
	read := []string{"$JS.API.STREAM.INFO." + stream, "$JS.API.STREAM.MSG.GET." + stream}
	ownBeat := rows + "beat." + instance
	return []grants{
		{
			role: broker.Barrier(instance), label: "cotal:auth-barrier:acme",
			publishes: slices.Concat(read, []string{
				"$JS.API.STREAM.CREATE." + records, "$JS.API.STREAM.INFO." + records, "$JS.API.STREAM.MSG.GET." + records,
				rows + "plane", rows + "owed", rows + "op.x", rows + "frontier.x", rows + "head.u_x.laptop", rows + "cred.x.c", rows + "bysrc.k.h.x.c",
				rows + "srcgate.k.h", rows + "grant.u_x.laptop", rows + "inst.e.i", rows + "icred.e.i.c", ownBeat, recorded + "beat." + instance,
			}),
			subscribes: []string{"cotal.acme.changed.plane", "cotal.acme.changed.asked.*"},
			neverPublishes: slices.Concat(makingConsumers(stream, "x"), makingConsumers(stream, "cotal-ledger-scan-0"), makingConsumers(records, "cotal-records-scan-0"),
				altering(stream), altering(records), []string{
					rows + "uid.x", rows + "session.x", rows + "roster", rows + "asked." + instance, rows + "beat." + another, rows + "plane.x", rows + "owed.x",
					"$JS.API.STREAM.CREATE." + stream, "$JS.API.STREAM.CREATE.mine", recorded + "beat." + another, recorded + "oblig.x", "$JS.API.INFO",
				}),
			never: []string{rows + ">", "cotal.acme.changed.>", "cotal.acme.changed.head.*.*"},
		},
		{
			role: broker.Issuer(instance), label: "cotal:remote-manager-issuer:acme",
			publishes: slices.Concat(read, []string{rows + "inst.e.i", rows + "icred.e.i.c", rows + "ctl.e.i", rows + "session.x", rows + "head.u_x.laptop", rows + "cred.x.c", ownBeat}),
			neverPublishes: slices.Concat(makingConsumers(stream, "x"), altering(stream), []string{
				rows + "plane", rows + "owed", rows + "uid.x", rows + "bysrc.k.h.x.c", rows + "grant.u_x.laptop", rows + "op.x", rows + "beat." + another, recorded + "x",
				rows + "ctl.e", rows + "ctl.e.i.x",
			}),
			never: []string{"cotal.acme.changed.>"},
		},
		{
			role: broker.Maintenance("svc_a", instance), label: "cotal:remote-manager-maintenance:acme:svc_a",
			publishes: slices.Concat(read, []string{rows + "inst.svc_a." + instance, rows + "icred.svc_a." + instance + ".c", ownBeat}),
			neverPublishes: slices.Concat(makingConsumers(stream, "x"), altering(stream), []string{
				rows + "inst.svc_a." + another, rows + "inst.auth." + instance, rows + "inst.svc_b." + instance, rows + "ctl.svc_a." + instance, rows + "plane",
			}),
			never: []string{"cotal.acme.changed.>"},
		},
		{
			role: broker.Registration(instance), label: "cotal:auth-registration:acme",
			publishes: slices.Concat(read, []string{rows + "inst.auth." + instance, rows + "icred.auth." + instance + ".c", ownBeat}),
			neverPublishes: slices.Concat(makingConsumers(stream, "x"), altering(stream), []string{
				rows + "inst.auth." + another, rows + "icred.auth." + another + ".c", rows + "inst.e." + instance, rows + "plane", rows + "head.u_x.laptop",
			}),
			never: []string{"cotal.acme.changed.>"},
		},
		{
			role: broker.HostRegistration("svc_a", instance), label: "cotal:host-registration:acme:svc_a",
			publishes: slices.Concat(read, []string{rows + "inst.svc_a." + instance, rows + "icred.svc_a." + instance + ".c", ownBeat}),
			neverPublishes: slices.Concat(makingConsumers(stream, "x"), altering(stream), []string{
				rows + "inst.svc_a." + another, rows + "inst.auth." + instance, rows + "inst.svc_b." + instance, rows + "plane",
			}),
			never: []string{"cotal.acme.changed.>"},
		},
		scannerGrants(broker.LedgerScanner(), "cotal:auth-scan:acme", stream, "cotal-ledger-scan", records, "cotal-records-scan"),
		scannerGrants(broker.RecordsScanner(), "cotal:records-scan:acme", records, "cotal-records-scan", stream, "cotal-ledger-scan"),
	}
}

// scannerGrants is a scanner of one stream, who has nothing to do with the other.
func scannerGrants(role broker.Role, label, own, name, other, otherName string) grants {
	g := grants{role: role, label: label, never: []string{rows + ">", recorded + ">", "cotal.acme.changed.>"}}
	for _, lane := range []string{"-0", "-3"} {
		for _, verb := range []string{"CREATE.", "DELETE.", "INFO.", "MSG.NEXT."} {
			g.publishes = append(g.publishes, "$JS.API.CONSUMER."+verb+own+"."+name+lane)
		}
	}
	g.neverPublishes = slices.Concat(makingConsumers(own, name), makingConsumers(own, name+"-4"), makingConsumers(own, "x"), makingConsumers(other, otherName+"-0"),
		altering(own), []string{
			"$JS.API.CONSUMER.CREATE." + own + "." + name + "-0.x", "$JS.API.CONSUMER.DURABLE.CREATE." + own + "." + name + "-0", "$JS.API.CONSUMER.CREATE." + own,
			rows + "plane", rows + "beat." + instance, recorded + "x", "$JS.API.STREAM.MSG.GET." + own, "$JS.API.STREAM.INFO." + own, "$JS.API.STREAM.CREATE." + own,
		})
	return g
}

func TestEveryRoleOfThePlaneMayExactlyWhatItsTableSays(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	for _, g := range planeTable() {
		t.Run(g.label, func(t *testing.T) {
			c := dial(t, d, g.role)
			if c.Label() != g.label {
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
			may(mayPublish, true, g.publishes...)
			may(mayPublish, false, append(g.neverPublishes, nobodyPublishes...)...)
			may(maySubscribe, true, append(g.subscribes, "_INBOX_"+c.ID()+".x")...)
			may(maySubscribe, false, append(g.never, nobodySubscribes...)...)
		})
	}
}

func TestScannersCanDoTheirWorkAndNobodyElseCan(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	authorityStream(t, space)
	d := dialer(t, space)
	cfg := rowstream.Config{Space: "acme", Replicas: 1, Instance: instance}
	barrier := dial(t, d, broker.Barrier(instance))
	if _, err := rowstream.Open(t.Context(), barrier.NATS(), cfg.Records(), rowstream.Installation{}); err != nil {
		t.Fatalf("the barrier cannot make the records: %v", err)
	}
	for _, c := range []struct {
		role broker.Role
		cfg  rowstream.Config
	}{{broker.LedgerScanner(), cfg}, {broker.RecordsScanner(), cfg.Records()}} {
		backend := rowstream.New(barrier.NATS(), c.cfg, rowstream.NewLanes(1))
		left, err := backend.Milestone(t.Context())
		if err != nil {
			t.Fatalf("the barrier leaves no milestone in %s: %v", c.cfg.Name(), err)
		}
		rows, err := rowstream.NewScanner(dial(t, d, c.role).NATS(), c.cfg).Scan(t.Context(), ledger.Scan{Filter: "beat.*", Milestone: left})
		if err != nil || len(rows) != 1 || rows[0].Revision != left.Revision {
			t.Errorf("%s: scanned %v, %v", c.cfg.Name(), rows, err)
		}
		short := c.cfg
		short.Timeout = longEnough / 100
		if rows, err := rowstream.NewScanner(barrier.NATS(), short).Scan(t.Context(), ledger.Scan{Filter: "beat.*"}); err == nil {
			t.Errorf("the barrier scans: %v", rows)
		}
	}
	if broker.ScanLanes != rowstream.ScanLanes || broker.LedgerScan != rowstream.LedgerScanName || broker.RecordsScan != rowstream.RecordsScanName {
		t.Error("the scanners' names and their grants have come apart")
	}
}

func TestScannersNeverComeBack(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	for _, role := range []broker.Role{broker.LedgerScanner(), broker.RecordsScanner()} {
		c := dial(t, d, role)
		before, whole := c.Tuple()
		if !whole {
			t.Errorf("the tuple is %+v", before)
		}
		if c.NATS().Opts.AllowReconnect {
			t.Error("it would reconnect")
		}
	}
}

func TestATupleIsWhatTheServersSay(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	one, other := dial(t, d, broker.LedgerScanner()), dial(t, d, broker.LedgerScanner())
	tuple, _ := one.Tuple()
	second, _ := other.Tuple()
	if tuple.User == second.User || tuple.ClientID == second.ClientID || tuple.ServerID != second.ServerID || tuple.ServerName != second.ServerName {
		t.Errorf("%+v beside %+v", tuple, second)
	}
	if tuple.ServerID != one.ServerID() || tuple.ClientID != one.ClientID() {
		t.Errorf("%+v is not %s %d", tuple, one.ServerID(), one.ClientID())
	}
	_, err := ledger.EncodeClaim(messages.Claim{Generation: 1, ID: instance, State: messages.ClaimHeld, Ledger: tuple, Records: second,
		OpenedAt: oneMoment, Host: "h"})
	if err != nil {
		t.Errorf("no claim can name it: %v", err)
	}
	one.Sever()
	await(t, one.Ended(), "the end")
	if _, whole := one.Tuple(); whole {
		t.Error("an ended connection has a tuple")
	}
}

func TestAnEndpointIsOneToken(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	for _, endpoint := range []string{"*", ">", "a.b", "a b", "A"} {
		if _, err := d.Dial(t.Context(), broker.HostRegistration(endpoint, instance), newCustody(t).keep); err == nil {
			t.Errorf("%q is taken", endpoint)
		}
	}
}

// TestWhoeverRefusesCanProveTheLeader is about streams with replicas: there a refusal
// rests on a beat.
func TestWhoeverRefusesCanProveTheLeader(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	authorityStream(t, space)
	d := dialer(t, space)
	cfg := rowstream.Config{Space: "acme", Replicas: 3, Instance: instance}
	for _, role := range []broker.Role{broker.Writer(instance), broker.Barrier(instance), broker.Issuer(instance),
		broker.Registration(instance), broker.HostRegistration("svc_a", instance), broker.Maintenance("svc_a", instance)} {
		c := dial(t, d, role)
		if err := rowstream.New(c.NATS(), cfg, rowstream.NewLanes(1)).Sync(t.Context()); err != nil {
			t.Errorf("%s: %v", c.Label(), err)
		}
	}
}
