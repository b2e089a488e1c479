package face

import (
	"context"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// gates is Instances in memory.
type gates struct {
	all     messages.Instances
	refuses error
	asked   []string
}

func (g *gates) Instances(_ context.Context, m messages.ListInstances) (messages.Instances, error) {
	g.asked = append(g.asked, "list "+m.Endpoint)
	return g.all, g.refuses
}

func (g *gates) RepairInstance(_ context.Context, endpoint, instance string) (messages.InstanceRegistered, error) {
	g.asked = append(g.asked, "repair "+endpoint+" "+instance)
	return messages.InstanceRegistered{Instance: g.all.Items[0], Revoked: 2}, g.refuses
}

func TestInstancesOverHTTP(t *testing.T) {
	w := newWorld(t)
	gate := messages.Instance{Endpoint: "svc_a", Name: someUID, State: messages.InstanceFrozen, Generation: 3, Epoch: 2,
		Principal: messages.Principal{Owner: someOwner, Actor: "svc"}, Operation: messages.OperationRef{ID: "g1", Kind: "registration"}}
	w.gates.all = messages.Instances{Items: []messages.Instance{gate}, Unreadable: []string{"inst.svc_a.x"}}
	view := `"endpoint":"svc_a","instance":"` + someUID + `","state":"frozen","epoch":2,"generation":3,"owner":"` + someOwner + `","actor":"svc","held_by":"g1"`
	repair := `{"endpoint":"svc_a","instance":"` + someUID + `"}`
	for _, c := range []struct {
		method, path, body, want, asked string
		status                          int
	}{
		{"GET", "/v1/instances", "", `{"instances":[{` + view + `}],"unreadable":["inst.svc_a.x"]}`, "list ", 200},
		{"GET", "/v1/instances/svc_b", "", `{"instances":[{` + view + `}],"unreadable":["inst.svc_a.x"]}`, "list svc_b", 200},
		{"POST", "/v1/repair", repair, `{` + view + `,"revoked":2}`, "repair svc_a " + someUID, 200},
		{"POST", "/v1/repair", `{"endpoint":"svc_a","instance":"x","force":true}`, `"request.malformed"`, "", 400},
		{"GET", "/v1/repair", "", `"request.method"`, "", 405},
	} {
		w.gates.asked = nil
		a := w.do(c.method, w.url+c.path, c.body)
		if a.status != c.status || !strings.Contains(a.body, c.want) || strings.Join(w.gates.asked, ",") != c.asked {
			t.Errorf("%s %s: %d %s, asked %q", c.method, c.path, a.status, a.body, w.gates.asked)
		}
	}
	for _, refusal := range []messages.Error{messages.InstanceNotFrozen, messages.RegistrationAlive, messages.RegistrationUnknown, messages.InstanceHeld, messages.InstanceNotFound} {
		w.gates.refuses = refusal
		if a := w.do("POST", w.url+"/v1/repair", repair); a.status != refusal.Code.HTTPStatus() || a.reason() != refusal.Reason || a.status < 400 {
			t.Errorf("%s: %d %s", refusal.Reason, a.status, a.body)
		}
	}
	for _, path := range []string{"/v1/instances", "/v1/repair"} {
		if a := w.do("GET", w.publicURL+path, ""); a.status != 404 {
			t.Errorf("the public face has %s: %d", path, a.status)
		}
	}
}
