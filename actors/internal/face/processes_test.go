package face

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const gatePath = "/v1/instances/svc_a/" + someUID

// serves is a world with the open gate of one instance, at epoch 2.
func serves(t *testing.T) (*world, messages.Instance) {
	t.Helper()
	w := newWorld(t)
	gate := messages.Instance{Endpoint: "svc_a", Name: someUID, State: messages.InstanceOpen, Generation: 3, Epoch: 2,
		Principal: messages.Principal{Owner: someOwner, Actor: "svc"}}
	w.gates.all.Items = []messages.Instance{gate}
	return w, gate
}

const openView = `"endpoint":"svc_a","instance":"` + someUID + `","state":"open","epoch":2,"generation":3,"owner":"` + someOwner + `","actor":"svc","held_by":""`

func TestProcessesOverHTTP(t *testing.T) {
	w, _ := serves(t)
	const (
		who     = `"endpoint":"svc_a","instance":"` + someUID + `","owner":"` + someOwner + `","actor":"svc"`
		issued  = `{"token":"the-bearer","credential_id":"process-1","owner":"` + someOwner + `","actor":"svc","expires_at":"2026-05-01T12:00:00Z"}`
		refused = `"request.malformed"`
		observe = "observe svc_a " + someUID
	)
	for _, c := range []struct {
		method, path, body, want, asked string
		status                          int
	}{
		{"POST", "/v1/instances", `{` + who + `}`, `{` + openView + `,"revoked":3}`, "register svc_a " + someUID + " " + someOwner + ".svc", 200},
		{"POST", "/v1/instances", `{` + who + `,"epoch":3}`, refused, "", 400},
		{"POST", "/v1/instances", `{` + who + `,"actor":"other"}`, refused, "", 400},
		{"POST", "/v1/instances", `{"endpoint":"svc_a","instance":"` + someUID + `","owner":"` + someOwner + `"}`, refused, "", 400},
		{"POST", "/v1/instances", `{"endpoint":"svc_a","instance":"` + someUID + `","sub":"user-1","actor":"svc"}`, refused, "", 400},
		{"POST", "/v1/instances", `{"endpoint":7,"instance":"` + someUID + `","owner":"` + someOwner + `","actor":"svc"}`, refused, "", 400},
		{"POST", "/v1/instances?wait=1", `{` + who + `}`, refused, "", 400},
		{"POST", "/v1/instances", `{` + who, refused, "", 400},
		{"PUT", "/v1/instances", `{` + who + `}`, `"request.method"`, "", 405},

		{"POST", gatePath + "/credential", `{"epoch":2}`, issued, "issue svc_a " + someUID + " 2 0s", 200},
		{"POST", gatePath + "/credential", `{"epoch":0,"ttl_seconds":60}`, issued, "issue svc_a " + someUID + " 0 1m0s", 200},
		{"POST", gatePath + "/credential", `{}`, "epoch is missing", "", 400},
		{"POST", gatePath + "/credential", `{"epoch":-1}`, refused, "", 400},
		{"POST", gatePath + "/credential", `{"epoch":9007199254740992}`, refused, "", 400},
		{"POST", gatePath + "/credential", `{"epoch":"2"}`, refused, "", 400},
		{"POST", gatePath + "/credential", `{"epoch":2,"ttl_seconds":0}`, refused, "", 400},
		{"POST", gatePath + "/credential", `{"epoch":2,"ttl_seconds":901}`, refused, "", 400},
		{"POST", gatePath + "/credential", `{"epoch":2,"owner":"` + someOwner + `"}`, refused, "", 400},
		{"GET", gatePath + "/credential", "", `"request.method"`, "", 405},

		{"GET", gatePath, "", `{` + openView + `}`, observe, 200},
		{"GET", gatePath + "?epoch=2", "", `{` + openView + `,"fenced":false}`, observe, 200},
		{"GET", gatePath + "?epoch=2&wait=0", "", `{` + openView + `,"fenced":false}`, observe, 200},
		{"GET", gatePath + "?epoch=1&wait=600", "", `{` + openView + `,"fenced":true}`, observe, 200},
		{"GET", gatePath + "?wait=1", "", refused, "", 400},
		{"GET", gatePath + "?epoch=", "", refused, "", 400},
		{"GET", gatePath + "?epoch=-1", "", refused, "", 400},
		{"GET", gatePath + "?epoch=02", "", refused, "", 400},
		{"GET", gatePath + "?epoch=1&epoch=2", "", refused, "", 400},
		{"GET", gatePath + "?epoch=9007199254740992", "", refused, "", 400},
		{"GET", gatePath + "?epoch=1&wait=601", "", refused, "", 400},
		{"GET", gatePath + "?epoch=1&force=1", "", refused, "", 400},
		{"GET", gatePath + "?epoch=%zz", "", refused, "", 400},
	} {
		a := w.do(c.method, w.url+c.path, c.body)
		if asked := w.gates.taken(); a.status != c.status || !strings.Contains(a.body, c.want) || asked != c.asked {
			t.Errorf("%s %s %s: %d %s, asked %q", c.method, c.path, c.body, a.status, a.body, asked)
		}
	}
	if strings.Contains(w.logged(), "the-bearer") {
		t.Error("the log has the bearer")
	}
	for _, refusal := range []messages.Error{messages.InstanceSuperseded, messages.InstanceForeign, messages.InstanceHeld, messages.InstanceNotFound, messages.InstanceNotOpen,
		messages.CredentialGone, messages.NotGranted, messages.ServiceClosing, messages.BrokerAway, messages.OutcomeUnknown} {
		w.gates.refuse(refusal)
		for _, a := range []answer{
			w.do("POST", w.url+"/v1/instances", `{`+who+`}`),
			w.do("POST", w.url+gatePath+"/credential", `{"epoch":2}`),
			w.do("GET", w.url+gatePath+"?epoch=2&wait=600", ""),
		} {
			if a.status != refusal.Code.HTTPStatus() || a.reason() != refusal.Reason || (a.status == 503) != (a.header.Get("Retry-After") != "") || strings.Contains(a.body, "the-bearer") {
				t.Errorf("%s: %d %s", refusal.Reason, a.status, a.body)
			}
		}
	}
	w.gates.taken()
	for path, method := range map[string]string{"/v1/instances": "POST", gatePath: "GET", gatePath + "/credential": "POST"} {
		bare := w.do(method, w.url+path, "", func(r *http.Request) { r.Header.Del("Authorization") })
		if a := w.do(method, w.publicURL+path, ""); a.status != 404 || bare.status != 401 || w.gates.taken() != "" {
			t.Errorf("%s: %d on the public face, and %d without the capability", path, a.status, bare.status)
		}
	}
}

// awaits asks for the fence of the process of epoch 2, beside the test, and returns once
// that is waited for.
func (w *world) awaits(query string) <-chan answer {
	w.t.Helper()
	came := w.beside("GET", gatePath+query, "")
	w.begun()
	return came
}

// beside asks beside the test.
func (w *world) beside(method, path, body string) <-chan answer {
	came := make(chan answer, 1)
	go func() {
		a, err := w.try(context.WithoutCancel(w.t.Context()), method, w.url+path, body)
		if err != nil {
			w.t.Error(err)
		}
		came <- a
	}()
	return came
}

// begun returns once one more is waited for.
func (w *world) begun() {
	w.t.Helper()
	select {
	case <-w.gates.began:
	case <-time.After(time.Minute):
		w.t.Fatal("nobody was asked")
	}
}

func TestTheFenceOfAProcessIsAwaited(t *testing.T) {
	w, gate := serves(t)
	next := gate
	next.State, next.Operation = messages.InstanceFrozen, messages.OperationRef{ID: "g1", Kind: "registration"}
	for _, c := range []struct {
		gate messages.Instance
		want string
		code int
	}{
		{next, `"state":"frozen","epoch":2,"generation":3,"owner":"` + someOwner + `","actor":"svc","held_by":"g1","fenced":true}`, 200},
		{messages.Instance{}, `"instance.not-found"`, 404},
	} {
		came := w.awaits("?epoch=2&wait=600")
		w.gates.fence <- c.gate
		if a := <-came; a.status != c.code || !strings.Contains(a.body, c.want) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	w.gates.taken()
	a := w.do("GET", w.url+gatePath+"?epoch=2&wait=1", "")
	const asked = "observe svc_a " + someUID + ",await svc_a " + someUID + " 2,observe svc_a " + someUID
	if got := w.gates.taken(); a.status != 200 || strings.TrimSpace(a.body) != `{`+openView+`,"fenced":false}` || got != asked {
		t.Errorf("after the wait: %d %s, asked %q", a.status, a.body, got)
	}
	if n := len(w.loopback.turns.working) + len(w.loopback.fences); n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// However many wait for a fence, or register, others are worked on; and one more than
// there may be is told to come again.
func TestWhoWaitsForAProcessTakesNoTurn(t *testing.T) {
	w, gate := serves(t)
	w.loopback.turns = newTurns(1, 1, time.Minute)
	w.loopback.registering = newTurns(1, 0, time.Minute)
	w.loopback.fences = make(chan struct{}, 3)
	w.gates.holds = make(chan struct{})
	const register = `{"endpoint":"svc_a","instance":"` + someUID + `","owner":"` + someOwner + `","actor":"svc"}`
	var waiting []<-chan answer
	for range cap(w.loopback.fences) {
		waiting = append(waiting, w.awaits("?epoch=2&wait=600"))
	}
	registered := w.beside("POST", "/v1/instances", register)
	w.begun()
	for _, a := range []answer{w.do("GET", w.url+gatePath+"?epoch=2&wait=600", ""), w.do("POST", w.url+"/v1/instances", register)} {
		if a.status != 503 || a.reason() != messages.Busy.Reason || a.header.Get("Retry-After") == "" {
			t.Errorf("one more: %d %s", a.status, a.body)
		}
	}
	for _, path := range []string{"/v1/grants", gatePath, gatePath + "?epoch=1&wait=600"} {
		if a := w.do("GET", w.url+path, ""); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	close(w.gates.holds)
	gate.Epoch++
	for _, came := range waiting {
		w.gates.fence <- gate
		if a := <-came; a.status != 200 || a.fields["fenced"] != true {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if a := <-registered; a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	waitFor(t, func() bool {
		return len(w.loopback.turns.working)+len(w.loopback.registering.working)+len(w.loopback.fences) == 0
	})
}

// Who waits is told when the face drains, when he cannot be told, and is not cut off by
// the time that other answers have.
func TestHowTheWaitForAFenceEnds(t *testing.T) {
	w, _ := serves(t)
	server := httptest.NewUnstartedServer(w.loopback)
	server.Config.WriteTimeout = 100 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	if a, err := w.try(t.Context(), "GET", server.URL+gatePath+"?epoch=2&wait=1", ""); err != nil || a.status != 200 {
		t.Errorf("%d %s, %v", a.status, a.body, err)
	}
	w.begun()
	left, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := w.try(left, "GET", w.url+gatePath+"?epoch=2&wait=600", "")
		gone <- err
	}()
	w.begun()
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
	waitFor(t, func() bool { return len(w.loopback.fences) == 0 })
	came := w.awaits("?epoch=2&wait=600")
	must(t, w.loopback.Drain(t.Context()))
	if a := <-came; a.status != 503 || a.reason() != messages.ServiceClosing.Reason {
		t.Errorf("%d %s", a.status, a.body)
	}
}
