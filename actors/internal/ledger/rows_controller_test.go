package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// userOf is the i-th user's public key, always the same.
func userOf(i byte) string {
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{i}, 32))
	if err != nil {
		panic(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		panic(err)
	}
	return public
}

var digest = strings.Repeat("0f", 32)

// controllerFamily are the rows of what controllers asked for.
func controllerFamily() family {
	row := func(commands, requests string) string {
		return fmt.Sprintf(`{"v":1,"endpoint":"svc_a","instance":"%s","processEpoch":3,"keys":{"supervisor":"%s","executor":"%s","server":"%s","recorder":"%s","ledger":"%s"},"commands":[%s],"requests":[%s],"w":"%s"}`,
			uid, userOf(1), userOf(2), userOf(3), userOf(4), userOf(5), commands, requests, other)
	}
	request := func(id string) string {
		return `{"id":"` + id + `","door":"prepare","digest":"` + digest + `","iat":1800000000,"until":1800000300,"issued":[{"id":"supervisor-1","kind":"supervisor","user":"` +
			userOf(1) + `","exp":1800003600}]}`
	}
	first, second := request("request-0000000000000001"), request("request-0000000000000002")
	return family{"ctl", "ctl.svc_a." + uid, []string{row("", ""), row(`"start","stop"`, first+","+second)},
		through(ledger.DecodeController, func(c ledger.Controller) ([]byte, error) { return ledger.EncodeController(c, other) }), true}
}

// TestControllerRowsThatCannotBe are corruptions that only the family's own rules see.
func TestControllerRowsThatCannotBe(t *testing.T) {
	f := familyOf(t, "ctl")
	for _, c := range []change{
		{"another instance", uid, strings.ToUpper(uid)},
		{"two users with one key", userOf(2), userOf(3)},
		{"a user that is none", userOf(5), userOf(5)[1:]},
		{"commands that are not sorted", `"start","stop"`, `"stop","start"`},
		{"a command twice", `"start","stop"`, `"start","start"`},
		{"a command of two tokens", `"start"`, `"st.art"`},
		{"no list of commands", `["start","stop"]`, `null`},
		{"a request twice", "request-0000000000000002", "request-0000000000000001"},
		{"a short id", "request-0000000000000002", "request"},
		{"a digest in capitals", digest, strings.ToUpper(digest)},
		{"half a digest", digest, digest[1:]},
		{"a time that is none", `"iat":1800000000`, `"iat":0`},
		{"forgotten before it was issued", `"until":1800000300`, `"until":1800000000`},
		{"issued nothing", `"issued":[{"id":"supervisor-1","kind":"supervisor","user":"` + userOf(1) + `","exp":1800003600}]`, `"issued":[]`},
		{"run out before it was issued", `"exp":1800003600`, `"exp":1800000000`},
		{"an epoch beyond 2^53", `"processEpoch":3`, `"processEpoch":9007199254740993`},
	} {
		good := f.good[1]
		bad := strings.ReplaceAll(good, c.from, c.to)
		if bad == good {
			t.Fatalf("%s changes nothing", c.what)
		}
		if _, err := ledger.DecodeController(ledger.Row{Key: f.key, Value: []byte(bad)}); !errors.Is(err, messages.RowCorrupt) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func FuzzController(f *testing.F) { fuzzFamily(f, "ctl") }
