package face

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

const (
	someOwner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	someUID   = "uuuuuuuuuuuuuuuuuuuuuuuuuuuu"
)

// used grants a subject one actor and lets it exchange once, so that there is
// somebody to end.
func (w *world) used(subject, actor string) messages.Principal {
	w.t.Helper()
	p := messages.Principal{Owner: w.grant(subject, actor), Actor: actor}
	if a := w.exchange(subject, actor); a.status != 200 {
		w.t.Fatalf("exchange: %d %s", a.status, a.body)
	}
	return p
}

func about(p messages.Principal, more string) string {
	return `{"owner":"` + p.Owner + `","actor":"` + p.Actor + `"` + more + `}`
}

// begin sends a request beside the test, which waits until the desk was asked.
func (w *world) begin(method, path, body string) (op string, answers <-chan answer) {
	w.t.Helper()
	came := make(chan answer, 1)
	go func() {
		a, err := w.try(context.WithoutCancel(w.t.Context()), method, w.url+path, body)
		if err != nil {
			w.t.Error(err)
		}
		came <- a
	}()
	select {
	case op = <-w.desk.asked:
	case <-time.After(time.Minute):
		w.t.Fatal("nobody was asked")
	}
	return op, came
}

func TestRetire(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	op, answers := w.begin("POST", "/v1/retire", about(p, ""))
	w.desk.finish(op, messages.StepDone)
	a := <-answers
	if a.status != 200 || a.text("op_id") != op || a.text("uid") == "" || a.text("outcome") != "retired" || a.text("step") != "done" ||
		a.text("kind") != "retirement" || a.text("owner") != p.Owner || a.text("by") != "operator" || a.text("eviction") != "swept" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, want := range []string{`"evicted":3`, `"revoked":2`, `"vacuous":false`, `"servers":["n1","n2"]`, `"took_ms":250`, `"frontiers":{"WORK":7}`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
	if strings.Contains(a.body, "retry_at") || strings.Contains(a.body, "waiting_for") {
		t.Errorf("it is over, and goes on: %s", a.body)
	}
}

// Whoever does not wait long enough is told what is waited for, and asks again.
func TestAnOperationThatIsNotOver(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	a := w.do("POST", w.url+"/v1/retire?wait=0", about(p, ""))
	op := a.text("error", "op_id")
	if a.status != 503 || a.reason() != "operation.pending" || op == "" || a.text("error", "waiting_for") != "evicting" ||
		a.text("error", "next") != "authplane operations "+op || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"retryable":true`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.desk.waitsFor(op, "n2 does not answer", "authplane roster forget n2")
	a = w.do("POST", w.url+"/v1/retire?wait=0", about(p, ""))
	if a.status != 503 || a.text("error", "op_id") != op || a.text("error", "waiting_for") != "n2 does not answer" ||
		a.text("error", "next") != "authplane roster forget n2" || !strings.Contains(a.text("error", "message"), "n2 does not answer") {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.desk.finish(op, messages.StepDone)
	if a = w.do("POST", w.url+"/v1/retire?wait=0", about(p, "")); a.status != 200 || a.text("op_id") != op {
		t.Errorf("a repeat does not join it: %d %s", a.status, a.body)
	}
}

func TestARetirementThatNobodyBegins(t *testing.T) {
	w := newWorld(t)
	w.desk.set(func(d *desk) { d.absent = true })
	p := w.used("user-1", "laptop")
	a := w.do("POST", w.url+"/v1/retire?wait=0", about(p, ""))
	if a.status != 503 || a.reason() != "operation.pending" || a.text("error", "op_id") == "" ||
		!strings.Contains(a.text("error", "waiting_for"), "holds the plane") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// What was never used has nothing that could be connected.
func TestRetireWhatWasNeverUsed(t *testing.T) {
	w := newWorld(t)
	p := messages.Principal{Owner: w.grant("user-1", "laptop"), Actor: "laptop"}
	a := w.do("POST", w.url+"/v1/retire", `{"sub":"user-1","actor":"laptop"}`)
	if a.status != 200 || a.text("op_id") != "" || a.text("outcome") != "retired" || a.text("owner") != p.Owner || a.text("uid") == "" ||
		!strings.Contains(a.body, `"vacuous":true`) || !strings.Contains(a.body, `"servers":[]`) || !strings.Contains(a.body, `"frontiers":{}`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestRefusalsOfOperations(t *testing.T) {
	w := newWorld(t)
	good := `{"owner":"` + someOwner + `","actor":"laptop"}`
	for _, c := range []struct {
		method, path, body string
		status             int
		reason             string
	}{
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `"}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"actor":"laptop"}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","sub":"x","actor":"laptop"}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"local","actor":"laptop"}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","actor":"a.b"}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","actor":"laptop","uid":"short"}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","actor":"laptop","uid":""}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","actor":"laptop","uid":null}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","actor":"laptop","op_id":"` + someUID + `"}`, 400, "request.malformed"},
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","actor":"laptop","force":true}`, 400, "request.malformed"},
		{"POST", "/v1/retire", good + good, 400, "request.malformed"},
		{"POST", "/v1/retire?wait=-1", good, 400, "request.malformed"},
		{"POST", "/v1/retire?wait=1.5", good, 400, "request.malformed"},
		{"POST", "/v1/retire?wait=601", good, 400, "request.malformed"},
		{"POST", "/v1/retire?wait=", good, 400, "request.malformed"},
		{"POST", "/v1/retire?wait=007", good, 400, "request.malformed"},
		{"POST", "/v1/retire?wait=1&wait=2", good, 400, "request.malformed"},
		{"POST", "/v1/retire?wait=1&force=1", good, 400, "request.malformed"},
		{"POST", "/v1/retire?%zz", good, 400, "request.malformed"},
		{"POST", "/v1/takeover", `{"owner":"` + someOwner + `","actor":"laptop","op_id":"x"}`, 400, "request.malformed"},
		{"POST", "/v1/takeover", `{"owner":"` + someOwner + `","actor":"laptop","op_id":""}`, 400, "request.malformed"},
		{"POST", "/v1/takeover?wait=x", good, 400, "request.malformed"},
		{"GET", "/v1/retire", "", 405, "request.method"},
		{"GET", "/v1/operations/x", "", 400, "request.malformed"},
		{"GET", "/v1/operations/" + someUID, "", 404, "operation.not-found"},
		{"DELETE", "/v1/operations/" + someUID, "", 405, "request.method"},
		{"DELETE", "/v1/roster/n9", "", 404, "roster.unknown"},
		{"DELETE", "/v1/roster/n%0A", "", 400, "request.malformed"},
		{"DELETE", "/v1/roster", "", 405, "request.method"},
	} {
		a := w.do(c.method, w.url+c.path, c.body)
		if a.status != c.status || a.reason() != c.reason {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, a.status, a.body)
		}
	}
	if len(w.desk.retired)+len(w.desk.begun) != 0 {
		t.Errorf("something was begun: %v %v", w.desk.retired, w.desk.begun)
	}
	for _, refusal := range []messages.Error{messages.OperationConflict, messages.GateShut, messages.IncarnationEnded, messages.ClaimFenced} {
		w.desk.set(func(d *desk) { d.refuses = refusal })
		for _, path := range []string{"/v1/retire", "/v1/takeover"} {
			if a := w.do("POST", w.url+path, good); a.status != refusal.Code.HTTPStatus() || a.reason() != refusal.Reason {
				t.Errorf("%s: %d %s", refusal.Reason, a.status, a.body)
			}
		}
	}
	for _, path := range []string{"/v1/retire", "/v1/takeover", "/v1/operations", "/v1/roster"} {
		if a := w.do("GET", w.publicURL+path, ""); a.status != 404 {
			t.Errorf("the public face has %s: %d", path, a.status)
		}
	}
}

func TestTakeover(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	op, answers := w.begin("POST", "/v1/takeover", about(p, ""))
	if checkOperation(op) != nil {
		t.Errorf("it was given the id %q", op)
	}
	w.desk.finish(op, messages.StepDone)
	if a := <-answers; a.status != 200 || a.text("outcome") != "taken-over" || a.text("op_id") != op || a.fields["epoch"] != 2.0 {
		t.Errorf("%d %s", a.status, a.body)
	}
	op, answers = w.begin("POST", "/v1/takeover", about(p, `,"uid":"`+someUID+`","op_id":"`+someUID+`"`))
	if op != someUID || w.desk.begun[1].UID != someUID {
		t.Errorf("begun %+v", w.desk.begun)
	}
	w.desk.finish(op, messages.StepSuperseded)
	if a := <-answers; a.status != 403 || a.reason() != "incarnation.ended" || !strings.Contains(a.text("error", "message"), "superseded") {
		t.Errorf("superseded: %d %s", a.status, a.body)
	}
	if a := w.do("GET", w.url+"/v1/operations/"+op, ""); a.status != 200 || a.text("outcome") != "superseded" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestOperationsAreListed(t *testing.T) {
	w := newWorld(t)
	if a := w.do("GET", w.url+"/v1/operations", ""); a.status != 200 || strings.TrimSpace(a.body) != `{"operations":[]}` {
		t.Fatalf("%d %s", a.status, a.body)
	}
	p := w.used("user-1", "laptop")
	op := w.do("POST", w.url+"/v1/retire?wait=0", about(p, "")).text("error", "op_id")
	one := w.do("GET", w.url+"/v1/operations/"+op, "")
	if one.status != 200 || one.text("outcome") != "pending" || one.text("doing") != "evicting" || one.fields["done"] != 1.0 || one.fields["total"] != 3.0 || one.fields["attempt"] != 1.0 {
		t.Errorf("%d %s", one.status, one.body)
	}
	all := w.do("GET", w.url+"/v1/operations", "")
	if list, _ := all.fields["operations"].([]any); len(list) != 1 || list[0].(map[string]any)["op_id"] != op {
		t.Errorf("%d %s", all.status, all.body)
	}
	w.desk.finish(op, messages.StepDone)
	if a := w.do("GET", w.url+"/v1/operations", ""); strings.TrimSpace(a.body) != `{"operations":[]}` {
		t.Errorf("what is over is owed: %s", a.body)
	}
	if a := w.do("GET", w.url+"/v1/operations/"+op, ""); a.text("outcome") != "retired" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestTheRoster(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/v1/roster", `{"servers":["n1","n2"]}`},
		{"DELETE", "/v1/roster/n1", `{"servers":["n2"]}`},
		{"DELETE", "/v1/roster/n2", `{"servers":[]}`},
		{"GET", "/v1/roster", `{"servers":[]}`},
	} {
		if a := w.do(c.method, w.url+c.path, ""); a.status != 200 || strings.TrimSpace(a.body) != c.want {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
}

// Whoever waits for an operation keeps nobody else from working.
func TestWaitingTakesNoTurn(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	w.loopback.turns = newTurns(1, 1, 10*time.Millisecond)
	op, answers := w.begin("POST", "/v1/retire", about(p, ""))
	// The desk was asked within the turn, which ends right after.
	deadline := time.Now().Add(time.Minute)
	for w.do("GET", w.url+"/v1/grants", "").status != 200 {
		if time.Now().After(deadline) {
			t.Fatal("the one turn there is is taken")
		}
	}
	w.desk.finish(op, messages.StepDone)
	if a := <-answers; a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n := len(w.loopback.turns.working); n != 0 {
		t.Errorf("%d turns are taken", n)
	}
}

// A face that drains does not hold up its close for an operation, which goes on.
func TestADrainEndsTheWait(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	op, answers := w.begin("POST", "/v1/retire?wait=600", about(p, ""))
	must(t, w.loopback.Drain(t.Context()))
	if a := <-answers; a.status != 503 || a.reason() != "operation.pending" || a.text("error", "op_id") != op {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A revocation names the retirement that it asks for, if there is somebody to end.
func TestARevocationNamesItsRetirement(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	if a := w.do("DELETE", w.url+"/v1/grants/"+p.Owner+"/laptop", ""); a.status != 200 || a.text("op_id") != ledger.OperationOf(a.text("uid")) {
		t.Errorf("%d %s", a.status, a.body)
	}
	owner := w.grant("user-2", "laptop")
	a := w.do("DELETE", w.url+"/v1/grants/"+owner+"/laptop", "")
	if _, has := a.fields["op_id"]; a.status != 200 || has {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A wait may be longer than any other answer may take to be written.
func TestAWaitIsNotCutOff(t *testing.T) {
	w := newWorld(t)
	p := w.used("user-1", "laptop")
	server := httptest.NewUnstartedServer(w.loopback)
	server.Config.WriteTimeout = 100 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	a, err := w.try(t.Context(), "POST", server.URL+"/v1/retire?wait=1", about(p, ""))
	if err != nil || a.status != 503 || a.reason() != "operation.pending" {
		t.Errorf("%d %s, %v", a.status, a.body, err)
	}
}
