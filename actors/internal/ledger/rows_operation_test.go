package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// operationFamilies are the rows of operations and of what they end.
func operationFamilies() []family {
	operation := func(kind, step, ended, outcome string) string {
		return `{"v":1,"opId":"` + other + `","kind":"` + kind + `","owner":"` + owner + `","actor":"p","uid":"` + uid + `","step":"` + step +
			`","by":"x","began":1800000000123` + ended + `,"outcome":{"revoked":2,"evicted":1,"vacuous":false` + outcome + `},"w":"` + uid + `"}`
	}
	const ended = `,"ended":1800000000124`
	return []family{
		{"op", "op." + other, []string{
			operation("takeover", "begun", "", `,"servers":[]`),
			operation("retirement", "revoked", "", `,"servers":[]`),
			operation("takeover", "evicted", "", `,"eviction":"swept","servers":["n1","n2"]`),
			operation("retirement", "drained", "", `,"eviction":"expired","servers":[]`),
			operation("takeover", "done", ended, `,"eviction":"swept","servers":["n1"],"epoch":2`),
			operation("retirement", "done", ended, `,"eviction":"swept","servers":["n1"],"frontiers":{"A":0,"B":7}`),
			operation("takeover", "superseded", ended, `,"servers":[]`),
			operation("takeover", "superseded", ended, `,"eviction":"swept","servers":["n1"]`),
		}, through(ledger.DecodeOperation, func(o messages.Operation) ([]byte, error) { return ledger.EncodeOperation(o, uid) }), true},
		{"frontier", "frontier." + uid, []string{
			`{"v":1,"uid":"` + uid + `","opId":"` + other + `","streams":{}}`,
			`{"v":1,"uid":"` + uid + `","opId":"` + other + `","streams":{"A":0,"B":7}}`,
		}, through(ledger.DecodeFrontier, ledger.EncodeFrontier), false},
		{"bysrc", "bysrc.k-1.h_1." + uid + ".c-1", []string{
			`{"v":1,"kid":"k-1","handle":"h_1","uid":"` + uid + `","credId":"c-1"}`,
		}, through(ledger.DecodeLineage, ledger.EncodeLineage), false},
		{"srcgate", "srcgate.k-1.h_1", []string{
			`{"v":1,"kid":"k-1","handle":"h_1","state":"open"}`, `{"v":1,"kid":"k-1","handle":"h_1","state":"frozen"}`,
		}, through(ledger.DecodeSource, ledger.EncodeSource), false},
		{"session", "session.s-1", []string{
			`{"v":1,"id":"s-1","caller":"` + owner + `.p","uid":"` + uid + `","endpoint":"svc_a","instance":"` + uid +
				`","processEpoch":0,"server":"local.auth","exp":1800000000123,"w":"` + other + `"}`,
		}, through(ledger.DecodeSession, func(s ledger.Session) ([]byte, error) { return ledger.EncodeSession(s, other) }), true},
	}
}

// TestOperationRowsThatCannotBe are corruptions that only the family's own rules see.
func TestOperationRowsThatCannotBe(t *testing.T) {
	for name, changes := range map[string][]change{
		"op": {
			{"an unknown kind", `"takeover"`, `"registration"`},
			{"an unknown step", `"begun"`, `"half"`},
			{"the step of another kind", `"begun"`, `"drained"`},
			{"done without an end", `"begun"`, `"done"`},
			{"an end before its time", `,"outcome"`, `,"ended":1800000000123,"outcome"`},
			{"evicted without a proof", `"begun"`, `"evicted"`},
			{"a proof before its time", `,"servers"`, `,"eviction":"swept","servers"`},
			{"an unknown proof", `,"servers"`, `,"eviction":"hoped","servers"`},
			{"an epoch before its time", `"servers":[]`, `"servers":[],"epoch":2`},
			{"frontiers of a takeover", `"servers":[]`, `"servers":[],"frontiers":{"A":1}`},
			{"servers that are null", `"servers":[]`, `"servers":null`},
			{"servers unsorted", `"servers":[]`, `"servers":["b","a"]`},
			{"a server without a name", `"servers":[]`, `"servers":[""]`},
			{"a negative count", `"revoked":2`, `"revoked":-1`},
			{"a field more in the outcome", `"vacuous":false`, `"x":0,"vacuous":false`},
			{"nobody who asked", `"by":"x"`, `"by":""`},
			{"time 0", `"began":1800000000123`, `"began":0`},
			{"no witness", `"w":"` + uid, `"w":"`},
			{"an owner that is none", owner, `local`},
		},
		"frontier": {
			{"streams that are null", `{}`, `null`},
			{"a stream without a name", `{}`, `{"":1}`},
			{"a stream twice", `{}`, `{"A":1,"A":1}`},
			{"a sequence beyond 2^53", `{}`, `{"A":9007199254740993}`},
			{"a negative sequence", `{}`, `{"A":-1}`},
			{"no operation", other, ``},
		},
		"bysrc":   {{"no handle", `"h_1"`, `""`}, {"a handle of two tokens", `"h_1"`, `"h.1"`}, {"no credential", `"c-1"`, `""`}},
		"srcgate": {{"an unknown state", `"open"`, `"shut"`}, {"no issuer", `"k-1"`, `""`}},
		"session": {
			{"an id of two tokens", `"s-1"`, `"s.1"`},
			{"no caller", owner + ".p", ``},
			{"a caller of the infrastructure", owner + ".p", `local.auth`},
			{"no server", `local.auth`, ``},
			{"a negative epoch", `"processEpoch":0`, `"processEpoch":-1`},
			{"no expiry", `"exp":1800000000123`, `"exp":0`},
			{"no witness", `"w":"` + other, `"w":"`},
		},
		"asked":  {{"unsorted", `[]`, `["` + other + `","` + uid + `"]`}, {"no witness", `"w":"` + other, `"w":"`}, {"a uid that is none", `[]`, `["x"]`}},
		"roster": {{"unsorted", `[]`, `["b","a"]`}, {"one twice", `[]`, `["a","a"]`}, {"no witness", `"w":"` + other, `"w":"`}, {"no name", `[]`, `[""]`}},
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
}

func TestNoOperationRowIsEncodedThatCannotBeRead(t *testing.T) {
	if _, err := ledger.EncodeOperation(messages.Operation{}, uid); !errors.Is(err, messages.InternalFault) {
		t.Errorf("an operation of nothing: %v", err)
	}
	if _, err := ledger.EncodeFrontier(ledger.Frontier{}); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a frontier of nothing: %v", err)
	}
	if _, err := ledger.EncodeLineage(ledger.Lineage{}); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a lineage of nothing: %v", err)
	}
	if _, err := ledger.EncodeSource(ledger.SourceGate{}); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a gate of nothing: %v", err)
	}
	if _, err := ledger.EncodeSession(ledger.Session{}, uid); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a session of nothing: %v", err)
	}
	if _, err := ledger.EncodeRoster([]string{"b", "a"}, uid); !errors.Is(err, messages.InternalFault) {
		t.Errorf("an unsorted roster: %v", err)
	}
	many := ledger.Asking{Instance: "i"}
	for i := range 10_000 {
		many.UIDs = append(many.UIDs, fmt.Sprintf("%026d", i))
	}
	if _, err := ledger.EncodeAsked(many, uid); !errors.Is(err, messages.Busy) {
		t.Errorf("more than a row holds: %v", err)
	}
}

func FuzzOperation(f *testing.F) { fuzzFamily(f, "op") }
func FuzzFrontier(f *testing.F)  { fuzzFamily(f, "frontier") }
func FuzzLineage(f *testing.F)   { fuzzFamily(f, "bysrc") }
func FuzzSource(f *testing.F)    { fuzzFamily(f, "srcgate") }
func FuzzSession(f *testing.F)   { fuzzFamily(f, "session") }
