package runrequest_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const subject = "run.jobs.any.start.u_aaaaaaaaaaaaaaaaaaaaaaaaaa.laptop.aliceuidaliceuidaliceuid01.nonce-of-22-characters"

func TestSubjectsAreReadToTheLetter(t *testing.T) {
	s, err := runrequest.ParseSubject(subject)
	if err != nil || s.String() != subject || s.Command != runrequest.Start || s.Caller.Actor != "laptop" {
		t.Fatalf("%+v, %v", s, err)
	}
	if s.Pattern() != "run.jobs.*.start.u_aaaaaaaaaaaaaaaaaaaaaaaaaa.laptop.*.*" {
		t.Errorf("it takes %s", s.Pattern())
	}
	for _, other := range []string{"", "run", "x" + subject[3:], subject + ".x", subject[:len(subject)-2], "run.jobs.any.stop.o.a.u.nonce-of-22-characters",
		"run.*.any.start.o.a.u.nonce-of-22-characters", "run..any.start.o.a.u.nonce-of-22-characters", "run.jobs.any.start.o.a.>.nonce-of-22-characters"} {
		if _, err := runrequest.ParseSubject(other); !errors.Is(err, messages.Malformed) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if first, second := runrequest.NewNonce(), runrequest.NewNonce(); first == second {
		t.Error("a nonce comes twice")
	}
}

func TestBodiesHaveOneForm(t *testing.T) {
	for _, body := range []string{"", "{}", `{"v":2}`, `{"v":1,"x":1}`, `{"v":1} `, `{"v":1,"run":""}`, `{"v":1,"amend":true}`, `{"v":1,"v":1}`, `{"V":1}`, `{"v":1,"step":"a.b"}`,
		`{"v":1,"bind":{"instance":"i"}}`, `{"v":1,"bind":{"instance":"i","epoch":-1}}`, `{"v":1,"input":{ }}`, "{\"v\":1,\"step\":\"\xff\"}"} {
		if b, err := runrequest.ParseBody([]byte(body)); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: %+v, %v", body, b, err)
		}
	}
	if _, err := (runrequest.Body{Input: make([]byte, runrequest.MaxPayload)}).Encode(); !errors.Is(err, messages.Malformed) {
		t.Errorf("%v", err)
	}
}

// A signature is of one request, and of no other.
func TestASignatureIsOfOneRequest(t *testing.T) {
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := runrequest.ParseSubject(subject)
	m, err := runrequest.Sign(key, "certificate", "acme", s, runrequest.Body{Input: []byte(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	got := runrequest.Forward(m)
	if got.Subject != subject || got.Certificate != "certificate" || string(got.Payload) != `{"v":1,"input":{"a":1}}` {
		t.Errorf("%+v", got)
	}
	m.Data[0] = 'x'
	if got.Payload[0] == 'x' {
		t.Error("what is forwarded is shared")
	}
	seen := map[string]bool{}
	for _, statement := range [][]byte{runrequest.Statement("a", "b", nil), runrequest.Statement("b", "b", nil), runrequest.Statement("a", "c", nil), runrequest.Statement("a", "b", []byte("x"))} {
		seen[string(statement)] = true
	}
	if len(seen) != 4 {
		t.Error("two requests have one statement")
	}
	s.Nonce = "short"
	if _, err := runrequest.Sign(key, "c", "acme", s, runrequest.Body{}); !errors.Is(err, messages.Malformed) {
		t.Errorf("%v", err)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add(subject, []byte(`{"v":1,"run":"r","step":"a","amend":true,"bind":{"instance":"i","epoch":3},"input":[1]}`))
	f.Add("run.>", []byte(`{"v":1,"input":null}`))
	f.Fuzz(func(t *testing.T, text string, payload []byte) {
		if s, err := runrequest.ParseSubject(text); err == nil && s.String() != text {
			t.Errorf("%q is read as %q", text, s)
		}
		if b, err := runrequest.ParseBody(payload); err == nil {
			again, err := b.Encode()
			if err != nil || string(again) != string(payload) {
				t.Errorf("%q is written as %q, %v", payload, again, err)
			}
		}
	})
}
