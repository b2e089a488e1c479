package face

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// roll is Enrolments in memory.
type roll struct {
	asked    []messages.EnrolMachine
	granted  []messages.EnrolMachine
	err      error
	again    bool
	provides bool
	revoked  int
}

func (r *roll) Enroll(_ context.Context, m messages.EnrolMachine) (messages.MachineEnrolled, error) {
	r.asked = append(r.asked, m)
	return r.answer(m)
}

func (r *roll) Enrolment(_ context.Context, hash string) (messages.MachineEnrolled, error) {
	return r.answer(messages.EnrolMachine{TokenHash: hash})
}

func (r *roll) Provisions() bool { return r.provides }

func (r *roll) Grant(_ context.Context, m messages.EnrolMachine) (messages.MachineEnrolled, error) {
	r.granted = append(r.granted, m)
	return r.answer(m)
}

func (r *roll) Revoked() { r.revoked++ }

func (r *roll) answer(m messages.EnrolMachine) (messages.MachineEnrolled, error) {
	return messages.MachineEnrolled{Again: r.again, Step: messages.ProvisionReady, ExchangeURL: "https://x/exchange",
		Grant: messages.Grant{Principal: m.Principal, UID: "uid1", Revision: 1, TokenHash: m.TokenHash, State: messages.GrantLive}}, r.err
}

const machineHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestEnrolOverHTTP(t *testing.T) {
	w := newWorld(t)
	r, owner := w.roll, w.grant("user-1", "laptop")
	body := `{"owner":"` + owner + `","actor":"bot","token_hash":"` + machineHash + `","publish":["demo.a"],"parent":"` + owner + `.laptop","label":"l"}`
	a := w.do("POST", w.url+"/v1/enroll", body)
	if a.status != http.StatusCreated || a.fields["exchange_url"] != "https://x/exchange" || a.fields["step"] != "ready" || strings.Contains(a.body, machineHash) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if m := r.asked[0]; m.TokenHash != machineHash || m.Parent.Actor != "laptop" || m.Label != "l" || m.By != byOperator || len(m.Allowance.Publish) != 1 {
		t.Errorf("asked for %+v", m)
	}
	r.again = true
	if a := w.do("POST", w.url+"/v1/enroll", body); a.status != http.StatusOK {
		t.Errorf("again: %d %s", a.status, a.body)
	}
	if a := w.do("GET", w.url+"/v1/enroll/"+machineHash, ""); a.status != http.StatusOK || a.fields["uid"] != "uid1" {
		t.Errorf("found: %d %s", a.status, a.body)
	}
	asked := len(r.asked)
	for _, bad := range []string{
		strings.Replace(body, `"label"`, `"uid":"x","label"`, 1), strings.Replace(body, `"label"`, `"kind":"managed","label"`, 1),
		strings.Replace(body, `"label"`, `"token":"x","label"`, 1), strings.Replace(body, `"bot"`, `"a-b"`, 1), `{}`,
	} {
		if a := w.do("POST", w.url+"/v1/enroll", bad); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
	if len(r.asked) != asked {
		t.Errorf("asked for %+v", r.asked[asked:])
	}
}

// A machine that is granted gets what it needs with it, where it needs anything; its
// secret is shown once, and what is not known to be done is said to be so.
func TestGrantsOfMachinesGetWhatTheyNeed(t *testing.T) {
	w := newWorld(t)
	r, owner := w.roll, w.grant("user-1", "laptop")
	grant := `{"owner":"` + owner + `","actor":"bot","kind":"managed"}`
	if a := w.do("POST", w.url+"/v1/grants", grant); a.status != http.StatusCreated || len(r.granted) != 0 {
		t.Errorf("where it needs nothing: %d %s", a.status, a.body)
	}
	r.provides = true
	if a := w.do("POST", w.url+"/v1/grants", strings.Replace(grant, `"kind":"managed"`, `"publish":[]`, 1)); len(r.granted) != 0 {
		t.Errorf("a person: %d %s", a.status, a.body)
	}
	a := w.do("POST", w.url+"/v1/grants", grant)
	if secret, _ := a.fields["actor_token"].(string); a.status != http.StatusCreated || len(secret) != 43 || len(r.granted) != 1 || strings.Contains(a.body, r.granted[0].TokenHash) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, c := range []struct {
		err  error
		want messages.Error
	}{{messages.BrokerAway, messages.OutcomeUnknown}, {messages.FootprintRefused, messages.FootprintRefused}} {
		r.err = c.err
		if a := w.do("POST", w.url+"/v1/grants", grant); !strings.Contains(a.body, c.want.Reason) {
			t.Errorf("%v: %d %s", c.err, a.status, a.body)
		}
	}
}
