package face

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/messages"
)

// doors is Controllers in memory.
type doors struct {
	mu      sync.Mutex
	asked   []messages.AskController
	refuses error
	all     messages.Controllers
}

func (d *doors) AskController(_ context.Context, m messages.AskController) (messages.ControllerIssued, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, m)
	if d.refuses != nil {
		return messages.ControllerIssued{}, d.refuses
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return messages.ControllerIssued{Endpoint: m.Request.Endpoint, Instance: m.Request.Instance, Epoch: m.Request.Epoch,
		Principal: messages.Principal{Owner: m.Person.Principal.Owner, Actor: "ctl_x"}, RequestID: m.Request.ID, Receipt: messages.NewSecret("the-receipt"),
		Credentials: []messages.ControllerCredential{{Kind: messages.KindSupervisor, User: m.Request.Keys.Supervisor, JWT: "the-jwt", Expires: at.Add(time.Hour)}},
		Issued:      at, Expires: at.Add(time.Hour)}, nil
}

func (d *doors) Controllers(context.Context) (messages.Controllers, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all, d.refuses
}

// taken are the questions since it was asked last.
func (d *doors) taken() []messages.AskController {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.asked
	d.asked = nil
	return taken
}

func (d *doors) refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuses = err
}

// prepares is the body of a request to prepare.
func prepares(t *testing.T, actor string) string {
	t.Helper()
	var keys []string
	for _, kind := range []string{"supervisor", "executor", "server", "recorder", "ledger"} {
		pair, err := nkeys.CreateUser()
		must(t, err)
		public, err := pair.PublicKey()
		must(t, err)
		keys = append(keys, fmt.Sprintf("%q:%q", kind, public))
	}
	return `{"v":1,"space":"` + testSpace + `","actor":"` + actor + `","endpoint":"runner","instance":"` + someUID + `","epoch":3,"request_id":"` +
		strings.Repeat("r", 22) + `","keys":{` + strings.Join(keys, ",") + `}}`
}

// Whoever asks at a door is whom his proof names, in either form; and the body says
// nothing of who he is.
func TestTheDoorsTakeAProof(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "cli")
	bearer := w.exchange("user-1", "cli").text("token")
	proof := w.idToken("user-1", time.Hour)
	body := prepares(t, "cli")
	at := w.publicURL + "/v1/controllers/prepare"
	with := func(token string) option { return header("Authorization", "Bearer "+token) }
	for _, token := range []string{proof, bearer} {
		a := w.do("POST", at, body, with(token))
		asked := w.doors.taken()
		if a.status != http.StatusOK || len(asked) != 1 || asked[0].Person.Principal != (messages.Principal{Owner: owner, Actor: "cli"}) {
			t.Fatalf("%d %s, asked %+v", a.status, a.body, asked)
		}
		if asked[0].Request.Door != messages.DoorPrepare || asked[0].Request.Epoch != 3 || (token == bearer) != (asked[0].Person.UID != "") ||
			(token == bearer) != (asked[0].Person.Credential != "") || (token == bearer) != (len(asked[0].Person.Scope) == 1) {
			t.Errorf("asked %+v", asked[0])
		}
		if a.text("credentials", "supervisor", "jwt") != "the-jwt" || a.text("receipt") != "the-receipt" || a.text("expires_at") != "2026-05-01T13:00:00Z" ||
			a.text("owner") != owner || a.text("request_id") == "" {
			t.Errorf("answered %s", a.body)
		}
	}
	forged := bearer[:len(bearer)-4] + "AAAA"
	for what, c := range map[string]struct {
		status  int
		options []option
	}{
		"no proof":                 {401, []option{func(r *http.Request) { r.Header.Del("Authorization") }}},
		"two proofs":               {401, []option{func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + proof, "Bearer " + proof} }}},
		"the capability":           {401, nil},
		"a forged bearer":          {401, []option{with(forged)}},
		"a provider's that lapsed": {401, []option{with(w.idToken("user-1", -time.Hour))}},
	} {
		if a := w.do("POST", at, body, c.options...); a.status != c.status || len(w.doors.taken()) != 0 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	for what, damaged := range map[string]string{
		"an unknown member": strings.Replace(body, `"v":1`, `"v":1,"scope":["supervise"]`, 1),
		"half a body":       body[:len(body)/2],
	} {
		if a := w.do("POST", at, damaged, with(proof)); a.status != 400 || len(w.doors.taken()) != 0 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if logged := w.logged(); strings.Contains(logged, "the-receipt") || strings.Contains(logged, proof) {
		t.Error("the log has a secret")
	}
}

// Each refusal has a status of its own, and text that says no more than the catalogue.
func TestRefusalsAtTheDoors(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "cli")
	proof, body := w.idToken("user-1", time.Hour), prepares(t, "cli")
	for _, refusal := range []messages.Error{messages.SuperviseMissing, messages.ControllerSpace, messages.ControllerUnregistered, messages.InstanceNotOpen,
		messages.InstanceForeign, messages.InstanceSuperseded, messages.ReceiptInvalid, messages.ControllerTaken, messages.ControllerUnprepared,
		messages.ControllerRequestConflict, messages.ControllerRequests, messages.BrokerAway, messages.OutcomeUnknown} {
		w.doors.refuse(refusal)
		a := w.do("POST", w.publicURL+"/v1/controllers/prepare", body, header("Authorization", "Bearer "+proof))
		if a.status != refusal.Code.HTTPStatus() || a.reason() != refusal.Reason || strings.Contains(a.body, "receipt\":\"") {
			t.Errorf("%s: %d %s", refusal.Reason, a.status, a.body)
		}
	}
	for _, path := range []string{"/v1/controllers", "/v1/controllers/open"} {
		if a := w.do("POST", w.publicURL+path, body); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	for _, door := range controller.Doors {
		if a := w.do("GET", w.publicURL+"/v1/controllers/"+string(door), ""); a.status != 405 {
			t.Errorf("%s: %d", door, a.status)
		}
		if a := w.do("POST", w.url+"/v1/controllers/"+string(door), body); a.status != 404 {
			t.Errorf("the loopback face has %s: %d", door, a.status)
		}
	}
}

func TestControllersOverHTTP(t *testing.T) {
	w := newWorld(t)
	w.doors.all = messages.Controllers{Items: []messages.Controller{{Endpoint: "runner", Instance: someUID, Principal: messages.Principal{Owner: someOwner, Actor: "ctl_x"},
		State: messages.InstanceOpen, Epoch: 4, Prepared: 3, Activated: true, Live: 5, Expires: time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC)}}, Unreadable: []string{"ctl.a.b"}}
	want := `{"controllers":[{"endpoint":"runner","instance":"` + someUID + `","owner":"` + someOwner + `","actor":"ctl_x","state":"open","epoch":4,"prepared":3,` +
		`"activated":true,"live":5,"expires_at":"2026-05-01T13:00:00Z"}],"unreadable":["ctl.a.b"]}`
	if a := w.do("GET", w.url+"/v1/controllers", ""); a.status != 200 || strings.TrimSpace(a.body) != want {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := w.do("GET", w.publicURL+"/v1/controllers", ""); a.status != 404 {
		t.Errorf("the public face lists them: %d", a.status)
	}
}
