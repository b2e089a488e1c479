package face

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// gates is Instances in memory. A test may hold registrations up, and fences whom it
// wants to.
type gates struct {
	mu      sync.Mutex
	all     messages.Instances
	refuses error
	asked   []string
	// holds is waited for by registrations, if it is there.
	holds chan struct{}
	// began gets a value of each that is waited for.
	began chan struct{}
	fence chan messages.Instance
}

func newGates() *gates {
	return &gates{began: make(chan struct{}, 2*MaxWorking), fence: make(chan messages.Instance)}
}

func (g *gates) ask(format string, args ...any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, fmt.Sprintf(format, args...))
	return g.refuses
}

// taken is what was asked since it was asked last.
func (g *gates) taken() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := strings.Join(g.asked, ",")
	g.asked = nil
	return taken
}

func (g *gates) refuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuses = err
}

func (g *gates) Instances(_ context.Context, m messages.ListInstances) (messages.Instances, error) {
	return g.all, g.ask("list %s", m.Endpoint)
}

func (g *gates) RepairInstance(_ context.Context, endpoint, instance string) (messages.InstanceRegistered, error) {
	return messages.InstanceRegistered{Instance: g.all.Items[0], Revoked: 2}, g.ask("repair %s %s", endpoint, instance)
}

func (g *gates) ObserveGate(_ context.Context, endpoint, instance string) (messages.Instance, error) {
	return g.all.Items[0], g.ask("observe %s %s", endpoint, instance)
}

func (g *gates) AwaitFence(ctx context.Context, endpoint, instance string, epoch uint64) (messages.Instance, error) {
	err := g.ask("await %s %s %d", endpoint, instance, epoch)
	g.began <- struct{}{}
	if err != nil {
		return messages.Instance{}, err
	}
	select {
	case gate := <-g.fence:
		return gate, nil
	case <-ctx.Done():
		return messages.Instance{}, context.Cause(ctx)
	}
}

func (g *gates) RegisterHostInstance(ctx context.Context, endpoint, instance string, p messages.Principal) (messages.InstanceRegistered, error) {
	err := g.ask("register %s %s %s", endpoint, instance, p)
	if g.holds != nil {
		g.began <- struct{}{}
		select {
		case <-g.holds:
		case <-ctx.Done():
			return messages.InstanceRegistered{}, context.Cause(ctx)
		}
	}
	return messages.InstanceRegistered{Instance: g.all.Items[0], Revoked: 3}, err
}

func (g *gates) IssueInstanceCredential(_ context.Context, endpoint, instance string, epoch uint64, life time.Duration) (messages.InstanceCredentialIssued, error) {
	err := g.ask("issue %s %s %d %s", endpoint, instance, epoch, life)
	if err != nil {
		return messages.InstanceCredentialIssued{}, err
	}
	return messages.InstanceCredentialIssued{Instance: g.all.Items[0], CredentialID: "process-1", Bearer: messages.NewSecret("the-bearer"),
		Expires: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}, nil
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
		a := w.do(c.method, w.url+c.path, c.body)
		if asked := w.gates.taken(); a.status != c.status || !strings.Contains(a.body, c.want) || asked != c.asked {
			t.Errorf("%s %s: %d %s, asked %q", c.method, c.path, a.status, a.body, asked)
		}
	}
	for _, refusal := range []messages.Error{messages.InstanceNotFrozen, messages.RegistrationAlive, messages.RegistrationUnknown, messages.InstanceHeld, messages.InstanceNotFound} {
		w.gates.refuse(refusal)
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
