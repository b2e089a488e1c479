package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

var (
	nkey      = "U" + strings.Repeat("A", 55)
	otherNkey = "U" + strings.Repeat("B", 55)
)

// planeFamilies are the rows of the plane and of service instances.
func planeFamilies() []family {
	tuple := func(nkey string) string {
		return `{"serverName":"n1","serverId":"NAAA","cid":7,"userNkey":"` + nkey + `"}`
	}
	claim := func(state string) string {
		return `{"v":1,"generation":3,"claimId":"` + uid + `","state":"` + state + `","ledger":` + tuple(nkey) + `,"records":` + tuple(otherNkey) +
			`,"openedAt":1800000000123,"host":"h1"}`
	}
	gate := func(state, op string) string {
		return `{"v":1,"endpoint":"svc_a","instance":"` + uid + `","state":"` + state + `","generation":1,"processEpoch":0,"registrationRevision":0,"principal":"` +
			owner + `.p"` + op + `,"w":"` + other + `"}`
	}
	return []family{
		{"plane", "plane", []string{claim("held"), claim("released")}, through(ledger.DecodeClaim, ledger.EncodeClaim), false},
		{"owed", "owed", []string{
			`{"v":1,"ops":[],"w":"` + other + `"}`, `{"v":1,"ops":["` + uid + `","` + other + `"],"w":"` + other + `"}`},
			through(ledger.DecodeOwed, func(o messages.Owed) ([]byte, error) { return ledger.EncodeOwed(o, other) }), true},
		{"inst", "inst.svc_a." + uid, []string{gate("open", ""), gate("frozen", `,"op":{"id":"`+other+`","kind":"registration"}`),
			strings.Replace(gate("open", ""), owner+".p", "local.auth", 1)},
			through(ledger.DecodeInstance, func(i messages.Instance) ([]byte, error) { return ledger.EncodeInstance(i, other) }), true},
		{"icred", "icred.svc_a." + uid + ".c-1", []string{
			`{"v":1,"credId":"c-1","holder":"` + owner + `.p","endpoint":"svc_a","instance":"` + uid + `","processEpoch":0,"state":"active","exp":1800000000123}`,
			`{"v":1,"credId":"c-1","holder":"local.auth","endpoint":"svc_a","instance":"` + uid + `","processEpoch":9,"state":"revoked","exp":1}`},
			through(ledger.DecodeInstanceCredential, ledger.EncodeInstanceCredential), false},
		controllerFamily(),
		provisionFamily(),
	}
}

func familyOf(t *testing.T, name string) family {
	t.Helper()
	for _, f := range families() {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("no family %s", name)
	return family{}
}

// change is a good row with one thing in it replaced.
type change struct{ what, from, to string }

// TestPlaneRowsThatCannotBe are corruptions that only the family's own rules see.
func TestPlaneRowsThatCannotBe(t *testing.T) {
	for name, changes := range map[string][]change{
		"plane": {
			{"generation 0", `"generation":3`, `"generation":0`},
			{"a generation beyond 2^53", `"generation":3`, `"generation":9007199254740993`},
			{"an unknown state", `"held"`, `"leased"`},
			{"no claim id", uid, ``},
			{"a claim id of another grammar", uid, strings.ToUpper(uid)},
			{"cid 0", `"cid":7`, `"cid":0`},
			{"cid -1", `"cid":7`, `"cid":-1`},
			{"no server name", `"serverName":"n1"`, `"serverName":""`},
			{"no server id", `"serverId":"NAAA"`, `"serverId":""`},
			{"a field more in a tuple", `"cid":7`, `"x":0,"cid":7`},
			{"a user that is an account", nkey, "A" + nkey[1:]},
			{"a user that is too short", nkey, nkey[1:]},
			{"one connection for both", otherNkey, nkey},
			{"no host", `"host":"h1"`, `"host":""`},
			{"a host with a line end", `"host":"h1"`, `"host":"a\nb"`},
			{"a time as text", `"openedAt":1800000000123`, `"openedAt":"x"`},
			{"time 0", `"openedAt":1800000000123`, `"openedAt":0`},
		},
		"owed": {
			{"a list that is null", `"ops":[]`, `"ops":null`},
			{"an operation without name", `"ops":[]`, `"ops":[""]`},
			{"one twice", `"ops":[]`, `"ops":["` + uid + `","` + uid + `"]`},
			{"unsorted", `"ops":[]`, `"ops":["` + other + `","` + uid + `"]`},
			{"no witness", other, ``},
		},
		"inst": {
			{"generation 0", `"generation":1`, `"generation":0`},
			{"a negative epoch", `"processEpoch":0`, `"processEpoch":-1`},
			{"a fractional epoch", `"processEpoch":0`, `"processEpoch":0.5`},
			{"frozen without op", `"open"`, `"frozen"`},
			{"an unknown state", `"open"`, `"retired"`},
			{"open with op", `,"w"`, `,"op":{"id":"` + other + `","kind":"registration"},"w"`},
			{"an owner alone", owner + ".p", owner},
			{"an actor of the infrastructure that is none", owner + ".p", "local.a.b"},
			{"no witness", `"w":"` + other, `"w":"`},
			{"an endpoint of two tokens", `svc_a`, `svc.a`},
		},
		"icred": {
			{"an unknown state", `"active"`, `"frozen"`},
			{"no expiry", `"exp":1800000000123`, `"exp":0`},
			{"no holder", owner + ".p", ``},
			{"an id of two tokens", `"credId":"c-1"`, `"credId":"c.1"`},
		},
	} {
		f := familyOf(t, name)
		for _, c := range changes {
			if !strings.Contains(f.good[0], c.from) {
				t.Fatalf("%s holds no %s", f.good[0], c.from)
			}
			row := ledger.Row{Key: f.key, Value: []byte(strings.Replace(f.good[0], c.from, c.to, 1))}
			if _, err := f.again(row); !errors.Is(err, messages.RowCorrupt) {
				t.Errorf("%s with %s: %v", name, c.what, err)
			}
		}
	}
	frozen := familyOf(t, "inst").good[1]
	if _, err := ledger.DecodeInstance(ledger.Row{Key: "inst.svc_a." + uid, Value: []byte(strings.Replace(frozen, "registration\"", "takeover\"", 1))}); !errors.Is(err, messages.RowCorrupt) {
		t.Errorf("a gate frozen by a takeover: %v", err)
	}
}

func TestNoPlaneRowIsEncodedThatCannotBeRead(t *testing.T) {
	if _, err := ledger.EncodeClaim(messages.Claim{}); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a claim of nothing: %v", err)
	}
	if _, err := ledger.EncodeOwed(messages.Owed{Ops: []string{other, uid}}, uid); !errors.Is(err, messages.InternalFault) {
		t.Errorf("an unsorted list: %v", err)
	}
	if _, err := ledger.EncodeInstance(messages.Instance{State: messages.InstanceOpen}, uid); !errors.Is(err, messages.InternalFault) {
		t.Errorf("an instance of nothing: %v", err)
	}
	if _, err := ledger.EncodeInstanceCredential(ledger.InstanceCredential{}); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a credential of nothing: %v", err)
	}
}

func FuzzClaim(f *testing.F)              { fuzzFamily(f, "plane") }
func FuzzOwed(f *testing.F)               { fuzzFamily(f, "owed") }
func FuzzInstance(f *testing.F)           { fuzzFamily(f, "inst") }
func FuzzInstanceCredential(f *testing.F) { fuzzFamily(f, "icred") }
