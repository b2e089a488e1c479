package face

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// ran is ControllerRuns in memory.
type ran struct {
	mu      sync.Mutex
	persons []messages.ControllerPerson
	asked   []any
	refuses error
}

func (r *ran) take(p messages.ControllerPerson, ask any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.persons, r.asked = append(r.persons, p), append(r.asked, ask)
	return r.refuses
}

// taken are the questions since it was asked last, and who asked them.
func (r *ran) taken() ([]messages.ControllerPerson, []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	persons, asked := r.persons, r.asked
	r.persons, r.asked = nil, nil
	return persons, asked
}

func (r *ran) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = err
}

var ranAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (r *ran) AdmitControllerRun(_ context.Context, p messages.ControllerPerson, m messages.AdmitRun) (messages.RunAdmitted, error) {
	return messages.RunAdmitted{Revision: 7, Admission: messages.RunAdmission{Endpoint: m.Controller.Endpoint, Run: m.Run, Instance: m.Controller.Instance,
		Caller: messages.Principal{Owner: someOwner, Actor: "laptop"}, UID: someUID, Publish: []string{"demo.>"}, Witness: messages.WitnessSignature,
		AdmittedAt: ranAt}}, r.take(p, m)
}

func (r *ran) AttemptControllerRun(_ context.Context, p messages.ControllerPerson, m messages.AttemptRun) (messages.RunAttempted, error) {
	ends := ranAt.Add(time.Hour)
	return messages.RunAttempted{Attempt: messages.RunAttempt{Endpoint: m.Controller.Endpoint, Run: m.Run, Instance: m.Controller.Instance, Attempt: m.Attempt,
		Epoch: m.Controller.Epoch, Request: m.Request, Takeover: m.Takeover, Driver: m.Driver, Mediator: m.Mediator, Head: 9, ReservedAt: ranAt, Expires: ends},
		Driver:   messages.RunCredential{Key: m.Driver, JWT: "the-driver", Expires: ends},
		Mediator: messages.RunCredential{Key: m.Mediator, JWT: "the-mediator", Expires: ends}}, r.take(p, m)
}

func (r *ran) OperateControllerRun(_ context.Context, p messages.ControllerPerson, m messages.OperateRun) (messages.RunOperated, error) {
	return messages.RunOperated{Credential: messages.RunCredential{Key: m.Key, JWT: "the-operator", Expires: ranAt}, Subject: "answer.here"}, r.take(p, m)
}

func (r *ran) RevokeControllerRun(_ context.Context, p messages.ControllerPerson, m messages.RevokeControllerRun) (messages.RunRevocation, error) {
	return messages.RunRevocation{Endpoint: m.Controller.Endpoint, Run: m.Run, By: p.Principal.String(), Reason: m.Reason, RevokedAt: ranAt}, r.take(p, m)
}

func (r *ran) BindRunCaller(m messages.BindRunCaller) (messages.RunCallerBound, error) {
	return messages.RunCallerBound{Certificate: "the-certificate", Expires: ranAt}, r.take(messages.ControllerPerson{}, m)
}

// runner is a world whose public face answers about runs.
type runner struct {
	*world
	ran  *ran
	url  string
	face *Face
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	r := &runner{world: newWorld(t), ran: &ran{}}
	public := r.public.public
	public.Runs = r.ran
	r.face = Public(r.public.config, public)
	r.url = r.listen(r.face)
	return r
}

func newUserKey(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	must(t, err)
	public, err := pair.PublicKey()
	must(t, err)
	return public
}

const someRun = "run-0000000000000000000000000000000a"

// bodies are whole questions about a run, by their doors.
func (r *runner) bodies(actor string) map[string]map[string]any {
	r.t.Helper()
	whole := func(more map[string]any) map[string]any {
		keys := map[string]string{}
		for _, kind := range []string{"supervisor", "executor", "server", "recorder", "ledger"} {
			keys[kind] = newUserKey(r.t)
		}
		body := map[string]any{"v": 1, "space": testSpace, "actor": actor, "endpoint": "runner", "instance": someUID, "epoch": 3,
			"request_id": strings.Repeat("r", 22), "receipt": "the-receipt", "keys": keys, "run": someRun}
		for name, value := range more {
			body[name] = value
		}
		return body
	}
	request := map[string]any{"subject": "run.subject", "payload": base64.StdEncoding.EncodeToString([]byte(`{"a":1}`)), "certificate": "cert", "signature": "sig"}
	return map[string]map[string]any{
		"admit":   whole(map[string]any{"request": request}),
		"attempt": whole(map[string]any{"takeover": "t1", "attempt": 2, "driver": newUserKey(r.t), "mediator": newUserKey(r.t), "lifetime_seconds": 90}),
		"operate": whole(map[string]any{"key": newUserKey(r.t), "step": "a", "request": request}),
		"revoke":  whole(map[string]any{"reason": "enough"}),
	}
}

func (r *runner) ask(door string, body map[string]any, options ...option) answer {
	r.t.Helper()
	text, err := json.Marshal(body)
	must(r.t, err)
	return r.do("POST", r.url+"/v1/controllers/runs/"+door, string(text), options...)
}

func with(token string) option { return header("Authorization", "Bearer "+token) }

// Who asks about a run is whom his proof names, and what he asks arrives as it was said,
// with the receipt; each door answers everything that it gives.
func TestControllersAskAboutRuns(t *testing.T) {
	r := newRunner(t)
	owner := r.grant("user-1", "cli")
	bearer, proof := r.exchange("user-1", "cli").text("token"), r.idToken("user-1", time.Hour)
	me := messages.Principal{Owner: owner, Actor: "cli"}
	bodies := r.bodies("cli")
	for door, body := range bodies {
		for _, token := range []string{proof, bearer} {
			a := r.ask(door, body, with(token))
			persons, asked := r.ran.taken()
			if a.status != 200 || len(asked) != 1 || persons[0].Principal != me || (persons[0].UID != "") != (token == bearer) ||
				a.text("request_id") != strings.Repeat("r", 22) || a.text("endpoint") != "runner" || a.text("run") != someRun {
				t.Fatalf("%s: %d %s, %+v asked %+v", door, a.status, a.body, persons, asked)
			}
			var who messages.RunController
			var q messages.RunRequest
			switch m := asked[0].(type) {
			case messages.AdmitRun:
				who, q = m.Controller, m.Request
			case messages.AttemptRun:
				who, q = m.Controller, messages.RunRequest{Subject: "run.subject", Payload: []byte(`{"a":1}`), Certificate: "cert", Signature: "sig"}
				if m.Request != strings.Repeat("r", 22) || m.Takeover != "t1" || m.Attempt != 2 || m.Driver != body["driver"] || m.Mediator != body["mediator"] || m.Lifetime != 90*time.Second {
					t.Errorf("asked %+v", m)
				}
			case messages.OperateRun:
				who, q = m.Controller, m.Served
				if m.Key != body["key"] || m.Step != "a" || m.Amend {
					t.Errorf("asked %+v", m)
				}
			case messages.RevokeControllerRun:
				who, q = m.Controller, messages.RunRequest{Subject: "run.subject", Payload: []byte(`{"a":1}`), Certificate: "cert", Signature: "sig"}
				if m.Reason != "enough" {
					t.Errorf("asked %+v", m)
				}
			}
			if who.Receipt.Reveal() != "the-receipt" || who.Endpoint != "runner" || who.Instance != someUID || who.Epoch != 3 || who.Space != testSpace || who.Actor != "cli" ||
				who.Keys.Ledger != body["keys"].(map[string]string)["ledger"] || !who.Principal.IsZero() {
				t.Errorf("%s: %+v", door, who)
			}
			if q.Subject != "run.subject" || string(q.Payload) != `{"a":1}` || q.Certificate != "cert" || q.Signature != "sig" {
				t.Errorf("%s: %+v", door, q)
			}
		}
	}
	for door, want := range map[string]string{
		"admit": `{"request_id":"rrrrrrrrrrrrrrrrrrrrrr","endpoint":"runner","run":"` + someRun + `","instance":"` + someUID + `","owner":"` + someOwner +
			`","actor":"laptop","uid":"` + someUID + `","publish":["demo.>"],"subscribe":[],"witness":"signature","admitted_at":"2026-05-01T12:00:00Z","revision":7}`,
		"attempt": `{"request_id":"rrrrrrrrrrrrrrrrrrrrrr","endpoint":"runner","run":"` + someRun + `","instance":"` + someUID + `","attempt":2,"epoch":3,"takeover":"t1","driver":"D","mediator":"M",` +
			`"reserved_at":"2026-05-01T12:00:00Z","expires_at":"2026-05-01T13:00:00Z","head":9,"credentials":{"driver":{"user":"D","jwt":"the-driver","expires_at":"2026-05-01T13:00:00Z"},` +
			`"mediator":{"user":"M","jwt":"the-mediator","expires_at":"2026-05-01T13:00:00Z"}}}`,
		"operate": `{"request_id":"rrrrrrrrrrrrrrrrrrrrrr","endpoint":"runner","run":"` + someRun + `","credential":{"user":"K","jwt":"the-operator","expires_at":"2026-05-01T12:00:00Z"},"subject":"answer.here"}`,
		"revoke":  `{"request_id":"rrrrrrrrrrrrrrrrrrrrrr","endpoint":"runner","run":"` + someRun + `","by":"` + owner + `.cli","reason":"enough","at":"2026-05-01T12:00:00Z"}`,
	} {
		body := bodies[door]
		name := func(member string) string { s, _ := body[member].(string); return s }
		got := strings.TrimSpace(r.ask(door, body, with(proof)).body)
		for short, member := range map[string]string{"D": "driver", "M": "mediator", "K": "key"} {
			if key := name(member); key != "" {
				got = strings.ReplaceAll(got, key, short)
			}
		}
		if got != want {
			t.Errorf("%s answers\n%s, not\n%s", door, got, want)
		}
	}
	if logged := r.logged(); strings.Contains(logged, "the-receipt") || strings.Contains(logged, "the-driver") || strings.Contains(logged, bearer) {
		t.Error("the log has a secret")
	}
}

// Nobody is asked about what has no proof, no receipt, or members of its own; and each
// refusal has its status, also when there are more of them than of failed proofs.
func TestRefusalsAtTheDoorsOfRuns(t *testing.T) {
	r := newRunner(t)
	r.grant("user-1", "cli")
	bearer, proof := r.exchange("user-1", "cli").text("token"), r.idToken("user-1", time.Hour)
	for door, body := range r.bodies("cli") {
		for what, c := range map[string]struct {
			status  int
			change  func(map[string]any)
			options []option
		}{
			"no proof":           {401, nil, []option{func(q *http.Request) { q.Header.Del("Authorization") }}},
			"two proofs":         {401, nil, []option{func(q *http.Request) { q.Header["Authorization"] = []string{"Bearer " + proof, "Bearer " + proof} }}},
			"the capability":     {401, nil, []option{with(r.capability.Reveal())}},
			"a forged bearer":    {401, nil, []option{with(bearer[:len(bearer)-4] + "AAAA")}},
			"one that lapsed":    {401, nil, []option{with(r.idToken("user-1", -time.Hour))}},
			"no receipt":         {400, func(b map[string]any) { delete(b, "receipt") }, nil},
			"an empty receipt":   {400, func(b map[string]any) { b["receipt"] = "" }, nil},
			"an unknown member":  {400, func(b map[string]any) { b["ceiling"] = []string{">"} }, nil},
			"one that is a form": {415, nil, []option{header("Content-Type", mediaForm)}},
			"too much":           {413, func(b map[string]any) { b["run"] = strings.Repeat("r", controller.MaxRunEnvelope) }, nil},
		} {
			changed := map[string]any{}
			for name, value := range body {
				changed[name] = value
			}
			if c.change != nil {
				c.change(changed)
			}
			a := r.ask(door, changed, append([]option{with(proof)}, c.options...)...)
			if _, asked := r.ran.taken(); a.status != c.status || len(asked) != 0 {
				t.Errorf("%s, %s: %d %s, asked %+v", door, what, a.status, a.body, asked)
			}
		}
		for _, refusal := range []messages.Error{messages.SuperviseMissing, messages.ControllerSpace, messages.ControllerUnregistered, messages.InstanceNotOpen,
			messages.InstanceForeign, messages.InstanceSuperseded, messages.ReceiptInvalid, messages.ControllerTaken, messages.ControllerUnprepared,
			messages.RunNotAdmitted, messages.RunConflict, messages.RunRequestUsed, messages.RunUnwitnessed, messages.RunExceeded, messages.RunRevoked, messages.RunEnded,
			messages.RunAttemptTaken, messages.RunNotWaiting, messages.ObserverOff, messages.JournalDamaged, messages.CredentialExpired, messages.BrokerAway, messages.OutcomeUnknown} {
			r.ran.refuse(refusal)
			a := r.ask(door, body, with(proof))
			if a.status != refusal.Code.HTTPStatus() || a.reason() != refusal.Reason || strings.Contains(a.body, `"jwt"`) {
				t.Errorf("%s, %s: %d %s", door, refusal.Reason, a.status, a.body)
			}
		}
		r.ran.refuse(nil)
		r.ran.taken()
		at := "/v1/controllers/runs/" + door
		if a := r.do("GET", r.url+at, ""); a.status != 405 {
			t.Errorf("GET %s: %d", door, a.status)
		}
		for where, url := range map[string]string{"the loopback face": r.world.url, "a face without runs": r.publicURL} {
			if a := r.do("POST", url+at, "{}"); a.status != 404 {
				t.Errorf("%s has %s: %d", where, door, a.status)
			}
		}
	}
}

// A request of the largest size fits into the question that forwards it.
func TestTheLargestRequestIsForwarded(t *testing.T) {
	r := newRunner(t)
	r.grant("user-1", "cli")
	body := r.bodies("cli")["admit"]
	body["request"] = map[string]any{"subject": "s", "payload": base64.StdEncoding.EncodeToString(make([]byte, runrequest.MaxPayload)),
		"certificate": strings.Repeat("c", 2<<10), "signature": strings.Repeat("s", 86)}
	a := r.ask("admit", body, with(r.idToken("user-1", time.Hour)))
	if _, asked := r.ran.taken(); a.status != 200 || len(asked) != 1 || len(asked[0].(messages.AdmitRun).Request.Payload) != runrequest.MaxPayload {
		t.Errorf("%d %s", a.status, a.body)
	}
	padded := strings.Repeat(" ", MaxBody) + `{"key":"x"}`
	if a := r.do("POST", r.url+"/v1/runs/bind", padded, with("x")); a.status != 413 {
		t.Errorf("another path takes as much: %d", a.status)
	}
}

// Whoever starts runs has his key certified for his bearer, which stands in the header.
func TestBindACallersKey(t *testing.T) {
	r := newRunner(t)
	r.grant("user-1", "cli")
	bearer, key := r.exchange("user-1", "cli").text("token"), newUserKey(t)
	at := r.url + "/v1/runs/bind"
	a := r.do("POST", at, `{"key":"`+key+`"}`, with(bearer))
	_, asked := r.ran.taken()
	if len(asked) != 1 || strings.TrimSpace(a.body) != `{"certificate":"the-certificate","expires_at":"2026-05-01T12:00:00Z"}` || a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if m := asked[0].(messages.BindRunCaller); m.Key != key || m.Bearer.Reveal() != bearer {
		t.Errorf("asked %+v", m)
	}
	for what, c := range map[string]struct {
		body   string
		status int
		option option
	}{
		"no bearer":          {`{"key":"` + key + `"}`, 401, func(q *http.Request) { q.Header.Del("Authorization") }},
		"two":                {`{"key":"` + key + `"}`, 401, func(q *http.Request) { q.Header["Authorization"] = []string{"Bearer a", "Bearer b"} }},
		"a bearer in it":     {`{"key":"` + key + `","bearer":"x"}`, 400, with(bearer)},
		"a key that is none": {`{"key":7}`, 400, with(bearer)},
		"a list":             {`[]`, 400, with(bearer)},
	} {
		a := r.do("POST", at, c.body, c.option)
		if _, asked := r.ran.taken(); a.status != c.status || len(asked) != 0 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	for _, refusal := range []messages.Error{messages.ProofInvalid, messages.Malformed} {
		r.ran.refuse(refusal)
		if a := r.do("POST", at, `{"key":"`+key+`"}`, with(bearer)); a.status != refusal.Code.HTTPStatus() || a.reason() != refusal.Reason {
			t.Errorf("%s: %d %s", refusal.Reason, a.status, a.body)
		}
	}
	if strings.Contains(r.logged(), bearer) {
		t.Error("the log has a bearer")
	}
}
