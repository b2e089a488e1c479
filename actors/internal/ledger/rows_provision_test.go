package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

var tokenHash = strings.Repeat("0a", 32)

// provisionFamily are the rows of footprints.
func provisionFamily() family {
	start := `{"v":1,"owner":"` + owner + `","actor":"p","uid":"` + uid + `","tokenHash":"` + tokenHash + `","step":`
	end := `,"at":1800000000123,"w":"` + other + `"}`
	return family{"prov", "prov." + owner + ".p." + uid + "." + tokenHash, []string{
		start + `"planned","consumers":[],"rows":[],"drivers":[]` + end,
		start + `"granted","kept":true,"consumers":[{"stream":"S","name":"c","filters":["a.>"],"ack":"explicit","ackWait":30000,"maxDeliver":3,"maxAckPending":9,"deliver":"all","owned":"ours"}],` +
			`"rows":[{"bucket":"b","key":"k","value":"<v>","owned":"found"}],"drivers":[{"id":"` + other + `","until":1800000000123}]` + end,
		start + `"done","consumers":[{"stream":"S","name":"c","filters":[],"ack":"none","deliver":"new","owned":"made"}],"rows":[],"drivers":[]` + end,
	}, through(ledger.DecodeProvision, func(p messages.Provision) ([]byte, error) { return ledger.EncodeProvision(p, other) }), true}
}

func FuzzProvision(f *testing.F) { fuzzFamily(f, "prov") }

// TestFootprintsThatCannotBe are corruptions that only the family's own rules see.
func TestFootprintsThatCannotBe(t *testing.T) {
	f := familyOf(t, "prov")
	for _, c := range []change{
		{"an unknown step", `"granted"`, `"given"`}, {"another secret", `"tokenHash":"0a`, `"tokenHash":"0b`},
		{"no secret", `"tokenHash":"` + tokenHash + `"`, `"tokenHash":""`}, {"no consumer", `"name":"c"`, `"name":""`}, {"no stream", `"stream":"S"`, `"stream":""`},
		{"a null list", `"filters":["a.>"]`, `"filters":null`}, {"unknown ownership", `"owned":"ours"`, `"owned":"mine"`}, {"no bucket", `"bucket":"b"`, `"bucket":""`},
		{"a negative wait", `"ackWait":30000`, `"ackWait":-1`}, {"a wait without end", `"ackWait":30000`, `"ackWait":9007199254740991`},
		{"a driver without a name", `"id":"` + other + `"`, `"id":""`}, {"a driver without a time", `"until":1800000000123`, `"until":0`},
		{"no time", `"at":1800000000123`, `"at":0`}, {"a time before all", `"at":1800000000123`, `"at":-5`},
	} {
		bad := strings.Replace(f.good[1], c.from, c.to, 1)
		if bad == f.good[1] {
			t.Fatalf("%s changes nothing", c.what)
		}
		if _, err := f.again(ledger.Row{Key: f.key, Value: []byte(bad)}); !errors.Is(err, messages.RowCorrupt) {
			t.Errorf("%s is taken: %v", c.what, err)
		}
	}
	p := ledger.NewProvision(principal("p"), uid, tokenHash, messages.Footprint{Rows: []messages.FootprintRow{{Bucket: "b", Key: "k"}}})
	p.Rows, p.At = nil, someTime
	if _, err := ledger.EncodeProvision(p, other); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a part that is nobody's: %v", err)
	}
}

// What was written is known by its witness, so that it may be sent again; what another
// write came before is not.
func TestFootprintsMayBeSentAgain(t *testing.T) {
	ctx := t.Context()
	w := ledger.NewWriter(ledger.NewStore(memory.New(), brisk), ledger.Options{Instance: "i"})
	p := ledger.NewProvision(principal("p"), names.NewUID(), tokenHash, messages.Footprint{})
	p.At = someTime
	plan := ledger.WriteProvision{Provision: p, Witness: names.NewUID()}
	p.Step = messages.ProvisionGranted
	grant := ledger.GrantProvision{Ask: messages.EnrolMachine{Principal: principal("p"), TokenHash: tokenHash, Allowance: messages.Allowance{Publish: []string{"a"}}, By: "x"}}
	for range 2 {
		planned, err := w.WriteProvision(ctx, plan)
		if err != nil || planned.Moved || planned.Revision != 1 {
			t.Fatalf("planned %+v, %v", planned, err)
		}
		grant.WriteProvision = ledger.WriteProvision{Provision: p, Revision: planned.Revision, Witness: uid}
	}
	for range 2 {
		granted, err := w.GrantProvision(ctx, grant)
		if err != nil || granted.Moved || granted.Revision != 3 {
			t.Fatalf("granted %+v, %v", granted, err)
		}
	}
	if again, err := w.WriteProvision(ctx, plan); err != nil || !again.Moved {
		t.Errorf("the plan over the grant: %+v, %v", again, err)
	}
	grant.Witness = other
	if another, err := w.GrantProvision(ctx, grant); err != nil || !another.Moved {
		t.Errorf("another grant of it: %+v, %v", another, err)
	}
}
