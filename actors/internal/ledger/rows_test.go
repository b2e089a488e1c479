package ledger_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

const (
	owner = "u_7ddcihobiesn4x46pu2mxn2qee"
	uid   = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	other = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func principal(actor string) messages.Principal {
	return messages.Principal{Owner: owner, Actor: actor}
}

var someTime = time.UnixMilli(1_800_000_000_123).UTC()

// family is how one kind of row is read and written again.
type family struct {
	name string
	key  string
	// good are rows of that key in canonical form.
	good []string
	// again decodes and encodes.
	again func(ledger.Row) ([]byte, error)
	// witnessed rows end with a witness, which is written anew.
	witnessed bool
}

func families() []family {
	hash := strings.Repeat("0a", 32)
	return append([]family{
		{"head", "head." + owner + ".p", []string{
			`{"v":1,"owner":"` + owner + `","actor":"p","uid":"` + uid + `","epoch":1,"state":"active","generation":1}`,
			`{"v":1,"owner":"` + owner + `","actor":"p","uid":"` + uid + `","epoch":3,"state":"active","generation":4,"root":{"id":"` + other + `","exp":1800000000123}}`,
			`{"v":1,"owner":"` + owner + `","actor":"p","uid":"` + uid + `","epoch":1,"state":"frozen","generation":1,"op":{"id":"` + other + `","kind":"takeover"}}`,
			`{"v":1,"owner":"` + owner + `","actor":"p","uid":"` + uid + `","epoch":1,"state":"retiring","generation":1,"op":{"id":"` + other + `","kind":"retirement"}}`,
			`{"v":1,"owner":"` + owner + `","actor":"p","uid":"` + uid + `","epoch":1,"state":"retired","generation":1}`,
		}, through(ledger.DecodeHead, ledger.EncodeHead), false},
		{"uid", "uid." + uid, []string{`{"v":1,"uid":"` + uid + `","owner":"` + owner + `","actor":"p","by":"x"}`},
			through(ledger.DecodeReservation, ledger.EncodeReservation), false},
		{"grant", "grant." + owner + ".p", []string{
			`{"v":1,"owner":"` + owner + `","actor":"p","kind":"interactive","uid":"` + uid + `","revision":1,"scope":[],"publish":["a.>"],"subscribe":["<b>"],"serve":false,"state":"live","by":"x","at":1800000000123,"w":"` + other + `"}`,
			`{"v":1,"owner":"` + owner + `","actor":"p","kind":"managed","uid":"` + uid + `","revision":9,"scope":["s"],"publish":[],"subscribe":[],"serve":true,"role":"r","parent":"` + owner + `.q","label":"größer","tokenHash":"` + hash + `","state":"revoked","by":"x","at":1,"w":"` + other + `"}`,
		}, through(ledger.DecodeGrant, func(g messages.Grant) ([]byte, error) { return ledger.EncodeGrant(g, other) }), true},
		{"cred", "cred." + uid + ".c-1", []string{
			`{"v":1,"credId":"c-1","holder":"` + owner + `.p","uid":"` + uid + `","chain":["root","handle.k.h"],"state":"active","exp":1800000000123}`,
			`{"v":1,"credId":"c-1","holder":"` + owner + `.p","uid":"` + uid + `","endpoint":"svc_a","chain":["root"],"state":"revoked","exp":5}`,
		}, through(ledger.DecodeCredential, ledger.EncodeCredential), false},
		{"asked", "asked.i1", []string{`{"v":1,"instance":"i1","uids":[],"w":"` + other + `"}`,
			`{"v":1,"instance":"i1","uids":["` + uid + `","` + other + `"],"w":"` + other + `"}`},
			through(ledger.DecodeAsked, func(a ledger.Asking) ([]byte, error) { return ledger.EncodeAsked(a, other) }), true},
		{"beat", "beat.i1", []string{`{"v":1,"instance":"i1","n":7,"at":1800000000123}`},
			through(ledger.DecodeBeat, ledger.EncodeBeat), false},
		{"roster", "roster", []string{`{"v":1,"servers":[],"w":"` + other + `"}`, `{"v":1,"servers":["n1","n2"],"w":"` + other + `"}`},
			through(ledger.DecodeRoster, func(servers []string) ([]byte, error) { return ledger.EncodeRoster(servers, other) }), true},
	}, append(planeFamilies(), operationFamilies()...)...)
}

func through[V any](decode func(ledger.Row) (V, error), encode func(V) ([]byte, error)) func(ledger.Row) ([]byte, error) {
	return func(row ledger.Row) ([]byte, error) {
		value, err := decode(row)
		if err != nil {
			return nil, err
		}
		return encode(value)
	}
}

func TestRowsComeBackAsTheyWere(t *testing.T) {
	for _, f := range families() {
		for _, text := range f.good {
			again, err := f.again(ledger.Row{Key: f.key, Value: []byte(text)})
			if err != nil || string(again) != text {
				t.Errorf("%s: %s\nbecame %s, %v", f.name, text, again, err)
			}
		}
	}
}

func TestRowsThatCannotBeOurs(t *testing.T) {
	for _, f := range families() {
		for _, good := range f.good {
			for what, bad := range spoiled(good) {
				if _, err := f.again(ledger.Row{Key: f.key, Value: []byte(bad)}); !errors.Is(err, messages.RowCorrupt) {
					t.Errorf("%s: %s is taken: %s, %v", f.name, what, bad, err)
				}
			}
			for _, key := range []string{f.key + "x", "x" + f.key, "", "uid." + other, "head." + owner + ".q"} {
				if _, err := f.again(ledger.Row{Key: key, Value: []byte(good)}); !errors.Is(err, messages.RowCorrupt) {
					t.Errorf("%s: taken at %q: %v", f.name, key, err)
				}
			}
		}
	}
}

// spoiled are the ways in which any row can be wrong.
func spoiled(good string) map[string]string {
	bad := map[string]string{
		"an unknown field":       strings.Replace(good, `{"v":1`, `{"v":1,"extra":0`, 1),
		"an unknown last field":  strings.TrimSuffix(good, "}") + `,"extra":0}`,
		"a doubled field":        strings.Replace(good, `{"v":1`, `{"v":1,"v":1`, 1),
		"another version":        strings.Replace(good, `"v":1`, `"v":2`, 1),
		"no version":             strings.Replace(good, `"v":1,`, ``, 1),
		"a version in text":      strings.Replace(good, `"v":1`, `"v":"1"`, 1),
		"a fraction":             strings.Replace(good, `"v":1`, `"v":1.0`, 1),
		"an exponent":            strings.Replace(good, `"v":1`, `"v":1e0`, 1),
		"another case":           strings.Replace(good, `"v":1`, `"V":1`, 1),
		"something behind":       good + `{}`,
		"a line end":             good + "\n",
		"a space":                strings.Replace(good, `"v":1`, `"v": 1`, 1),
		"an array":               `[` + good + `]`,
		"nothing":                ``,
		"null":                   `null`,
		"an empty object":        `{}`,
		"a cut":                  good[:len(good)-1],
		"bytes that are no text": strings.Replace(good, `"v":1`, "\"v\":1,\"\xff\":0", 1),
	}
	return bad
}

func TestHeadsThatCannotBe(t *testing.T) {
	good := families()[0].good
	row := func(text, from, to string) ledger.Row {
		if !strings.Contains(text, from) {
			t.Fatalf("%s holds no %s", text, from)
		}
		return ledger.Row{Key: "head." + owner + ".p", Value: []byte(strings.Replace(text, from, to, 1))}
	}
	for what, r := range map[string]ledger.Row{
		"epoch 0":                  row(good[0], `"epoch":1`, `"epoch":0`),
		"a negative epoch":         row(good[0], `"epoch":1`, `"epoch":-1`),
		"a fractional epoch":       row(good[0], `"epoch":1`, `"epoch":1.5`),
		"an epoch beyond 2^53":     row(good[0], `"epoch":1`, `"epoch":9007199254740993`),
		"generation 0":             row(good[0], `"generation":1`, `"generation":0`),
		"an unknown state":         row(good[0], `"active"`, `"open"`),
		"retiring without op":      row(good[0], `"active"`, `"retiring"`),
		"frozen without op":        row(good[0], `"active"`, `"frozen"`),
		"active with op":           row(good[2], `"frozen"`, `"active"`),
		"retired with op":          row(good[3], `"retiring"`, `"retired"`),
		"frozen by a retirement":   row(good[2], `"takeover"`, `"retirement"`),
		"retiring by a takeover":   row(good[3], `"retirement"`, `"takeover"`),
		"an op without name":       row(good[2], `{"id":"`+other+`"`, `{"id":""`),
		"a root without name":      row(good[1], `{"id":"`+other+`"`, `{"id":""`),
		"a root that never was":    row(good[1], `"exp":1800000000123`, `"exp":0`),
		"an expiry in seconds.ms":  row(good[1], `"exp":1800000000123`, `"exp":1800000000.123`),
		"an unknown field in root": row(good[1], `"exp":`, `"x":0,"exp":`),
		"a uid of another grammar": row(good[0], uid, "A"+uid[1:]),
		"an empty uid":             row(good[0], uid, ""),
	} {
		if _, err := ledger.DecodeHead(r); !errors.Is(err, messages.RowCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestGrantsThatCannotBe(t *testing.T) {
	good := families()[2].good
	row := func(text, from, to string) ledger.Row {
		if !strings.Contains(text, from) {
			t.Fatalf("%s holds no %s", text, from)
		}
		return ledger.Row{Key: "grant." + owner + ".p", Value: []byte(strings.Replace(text, from, to, 1))}
	}
	hash := strings.Repeat("0a", 32)
	for what, r := range map[string]ledger.Row{
		"revision 0":               row(good[0], `"revision":1`, `"revision":0`),
		"a list that is null":      row(good[0], `"scope":[]`, `"scope":null`),
		"an unknown kind":          row(good[0], `"interactive"`, `"other"`),
		"an unknown state":         row(good[0], `"live"`, `"dead"`),
		"a person with a secret":   row(good[1], `"managed"`, `"interactive"`),
		"a machine without secret": row(good[0], `"interactive"`, `"managed"`),
		"a short hash":             row(good[1], hash, hash[2:]),
		"a hash in capitals":       row(good[1], hash, strings.ToUpper(hash)),
		"a parent that is none":    row(good[1], owner+`.q`, owner),
		"no writer":                row(good[0], `"by":"x"`, `"by":""`),
		"no witness":               row(good[0], `"w":"`+other+`"`, `"w":""`),
		"time 0":                   row(good[0], `"at":1800000000123`, `"at":0`),
		"an escaped pattern":       row(good[0], `"a.>"`, `"a.\u003e"`),
		"a label with a line end":  row(good[1], `größer`, `a\nb`),
		"an empty label":           row(good[1], `"label":"größer"`, `"label":""`),
	} {
		if _, err := ledger.DecodeGrant(r); !errors.Is(err, messages.RowCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNothingIsEncodedThatCannotBeRead(t *testing.T) {
	head := messages.Head{Principal: principal("p"), UID: uid, Epoch: 1, Generation: 1, State: messages.HeadActive}
	head.Operation.ID = other
	if _, err := ledger.EncodeHead(head); !errors.Is(err, messages.InternalFault) {
		t.Errorf("an active head with an operation: %v", err)
	}
	if _, err := ledger.EncodeAsked(ledger.Asking{Instance: "i", UIDs: []string{other, uid}}, other); err == nil {
		t.Error("an unsorted list is encoded")
	}
	grant := messages.Grant{Principal: principal("p"), Kind: messages.Interactive, UID: uid, Revision: 1,
		State: messages.GrantLive, By: "x", At: someTime}
	for range 300 {
		grant.Publish = append(grant.Publish, strings.Repeat("x", 1000))
	}
	if _, err := ledger.EncodeGrant(grant, other); !errors.Is(err, messages.Malformed) {
		t.Errorf("a huge grant: %v", err)
	}
}

func fuzzFamily(f *testing.F, name string) {
	for _, family := range families() {
		if family.name != name {
			continue
		}
		for _, good := range family.good {
			f.Add(family.key, []byte(good))
			for _, bad := range spoiled(good) {
				f.Add(family.key, []byte(bad))
			}
		}
		f.Fuzz(func(t *testing.T, key string, value []byte) {
			again, err := family.again(ledger.Row{Key: key, Value: value})
			switch {
			case err != nil && !errors.Is(err, messages.RowCorrupt):
				t.Fatalf("%q: %v", value, err)
			case err == nil && !family.witnessed && !bytes.Equal(again, value):
				t.Fatalf("%q became %q", value, again)
			case err == nil && family.witnessed && len(again) != 0 && !sameBarWitness(again, value):
				t.Fatalf("%q became %q", value, again)
			}
		})
	}
}

// sameBarWitness compares rows up to the witness, which is written anew.
func sameBarWitness(a, b []byte) bool {
	cut := func(s []byte) []byte { return s[:bytes.LastIndex(s, []byte(`,"w":"`))] }
	return bytes.Equal(cut(a), cut(b))
}

func FuzzHead(f *testing.F)       { fuzzFamily(f, "head") }
func FuzzUID(f *testing.F)        { fuzzFamily(f, "uid") }
func FuzzGrant(f *testing.F)      { fuzzFamily(f, "grant") }
func FuzzCredential(f *testing.F) { fuzzFamily(f, "cred") }
func FuzzAsked(f *testing.F)      { fuzzFamily(f, "asked") }
func FuzzBeat(f *testing.F)       { fuzzFamily(f, "beat") }
func FuzzRoster(f *testing.F)     { fuzzFamily(f, "roster") }
