package space_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// Whoever holds something of an instance is dropped, each with a verdict of his own; and
// nobody is gone whose credentials cannot be taken back.
func TestTheFamilyOfAnInstanceIsEvicted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.registers()
	if _, err := s.Space.IssueInstanceCredential(t.Context(), endpoint, instance, 0, 0); err != nil {
		t.Fatal(err)
	}
	dropped := make(chan struct{})
	s.svc.Connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(dropped) }))
	stranger := s.asker.Connect()
	evict := func(people ...messages.Principal) ([]messages.EvictionVerdict, error) {
		done, err := s.Space.EvictFamily(s.Context(), messages.EvictFamily{Endpoint: endpoint, Instance: instance, Principals: people})
		return done.Verdicts, err
	}
	outsider := messages.Principal{Owner: s.asker.Grant.Owner, Actor: s.asker.Grant.Actor}
	if _, err := evict(s.principal(), outsider); !errors.Is(err, messages.FamilyOutsider) {
		t.Errorf("an outsider: %v", err)
	}
	if _, err := evict(s.principal(), s.principal()); !errors.Is(err, messages.Malformed) {
		t.Errorf("one twice: %v", err)
	}
	select {
	case <-dropped:
		t.Error("dropped although it was refused")
	default:
	}
	got, err := evict(s.principal())
	if want := []messages.EvictionVerdict{{Principal: s.principal(), Evicted: 1, Gone: true}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the verdicts are %+v, %v", got, err)
	}
	select {
	case <-dropped:
	case <-time.After(world.Patience):
		t.Error("still connected")
	}
	if !stranger.IsConnected() {
		t.Error("somebody else was dropped")
	}
	if _, err := s.Space.EvictFamily(s.Context(), messages.EvictFamily{Endpoint: "nobody", Instance: instance, Principals: []messages.Principal{s.principal()}}); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("of an instance that is none: %v", err)
	}
	met := 0
	for _, c := range s.Space.Connections() {
		if c.Label == "cotal:remote-manager-maintenance:main:"+endpoint {
			if met++; !c.Ended {
				t.Errorf("%s has not ended", c.Label)
			}
		}
	}
	if met == 0 {
		t.Error("no connection of it was in custody")
	}
}

// Whoever is asked, the issuer killed in the middle or not, one request has one answer,
// and nothing more stands for it.
func TestTheIssuerDiesOverARequest(t *testing.T) {
	t.Parallel()
	w := world.New(t, publicly)
	c := newControlled(w)
	p := c.program(c.register())
	proof := c.IDToken("boss")
	p.asks("prepare", proof, p.request("prepare"))
	p.asks("activate", proof, p.request("activate"))
	before := c.live()
	for i, how := range []string{"panic", "stop", "disconnect"} {
		requests := make([]map[string]any, 8)
		for j := range requests {
			requests[j] = p.request("renew")
		}
		answers := make([]doorAnswer, len(requests))
		statuses := make([]int, len(requests))
		var all sync.WaitGroup
		for j := range requests {
			all.Go(func() { statuses[j], answers[j] = p.ask("renew", proof, requests[j]) })
		}
		if _, _, err := w.Space.Kill(t.Context(), "plane/issuer", how); err != nil && !errors.Is(err, messages.KillInapplicable) {
			t.Fatal(err)
		}
		all.Wait()
		w.AwaitLife("plane/issuer", uint64(i+2))
		for j, first := range answers {
			if statuses[j] != http.StatusOK && statuses[j] != http.StatusServiceUnavailable {
				t.Errorf("%s: %d %+v", how, statuses[j], first.Error)
			}
			again := p.asks("renew", proof, requests[j])
			if statuses[j] == http.StatusOK && !reflect.DeepEqual(again, first) {
				t.Errorf("%s: answered %+v, then %+v", how, first, again)
			}
		}
		if got, want := c.live(), before+(i+1)*5*len(requests); got != want {
			t.Errorf("%s: %d credentials stand, not %d", how, got, want)
		}
	}
}

// live counts the credentials that stand, as an operator sees it.
func (c *controlled) live() int {
	c.Helper()
	var list struct {
		Controllers []struct {
			Epoch, Prepared uint64
			Activated       bool
			Live            int
			ExpiresAt       string `json:"expires_at"`
		}
	}
	if status := c.Call("GET", "/v1/controllers", nil, &list); status != http.StatusOK || len(list.Controllers) != 1 {
		c.Fatalf("%d, %+v", status, list)
	}
	if one := list.Controllers[0]; one.Live > 0 && (one.ExpiresAt == "" || one.Epoch != one.Prepared) {
		c.Errorf("listed %+v", one)
	}
	return list.Controllers[0].Live
}

// Two programs race over two processes of the space, with a bearer as with a provider's
// token: one is the controller; and the right to be is read at each request.
func TestTwoControllersAtTwoProcesses(t *testing.T) {
	t.Parallel()
	w := world.New(t, publicly)
	c := newControlled(w)
	other := &controlled{World: w.Beside(), owner: c.owner}
	epoch := c.register()
	rivals := []*program{c.program(epoch), other.program(epoch)}
	bearer, status := c.Exchange("boss", "cli")
	if status != http.StatusOK {
		t.Fatalf("exchange: %d", status)
	}
	proofs := []string{c.IDToken("boss"), bearer}
	statuses := make([]int, 2)
	var both sync.WaitGroup
	for i := range rivals {
		both.Go(func() { statuses[i], _ = rivals[i].ask("prepare", proofs[i], rivals[i].request("prepare")) })
	}
	both.Wait()
	if min(statuses[0], statuses[1]) != http.StatusOK || max(statuses[0], statuses[1]) != http.StatusConflict {
		t.Fatalf("answered %v", statuses)
	}
	winner := rivals[0]
	if statuses[1] == http.StatusOK {
		winner = rivals[1]
	}
	// The receipt of one process is good at the other, whichever proof comes with it.
	winner.asks("prepare", proofs[0], winner.request("prepare"))
	winner.asks("activate", proofs[1], winner.request("activate"))
	elsewhere := *winner
	elsewhere.controlled = map[bool]*controlled{true: c, false: other}[winner.controlled == other]
	elsewhere.asks("renew", proofs[1], elsewhere.request("renew"))

	for _, change := range []struct {
		method string
		body   map[string]any
		reason string
	}{
		{"PUT", map[string]any{"revision": 1, "scope": []string{"spawn", "admin"}}, messages.SuperviseMissing.Reason},
		{"DELETE", nil, messages.NotGranted.Reason},
	} {
		if status := c.Call(change.method, "/v1/grants/"+c.owner+"/cli", change.body, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", change.method, status)
		}
		for _, proof := range proofs {
			if status, answer := winner.ask("renew", proof, winner.request("renew")); status != http.StatusForbidden || answer.Error.Reason != change.reason {
				t.Errorf("after %s: %d %+v", change.method, status, answer)
			}
		}
	}
}

func TestControllerLifetimesAreChecked(t *testing.T) {
	for life, good := range map[time.Duration]bool{4 * time.Second: false, 5 * time.Second: true, 86400 * time.Second: true, 86401 * time.Second: false, 90*time.Second + 1: false, -1: false, 0: true} {
		config := space.Config{Space: "main", NATSURL: "nats://127.0.0.1:4222", StateDir: "s", SecretsDir: "s", ControllerLifetime: life}
		if err := config.Validate(); (err == nil) != good {
			t.Errorf("%s: %v", life, err)
		}
	}
	_, err := space.Start(context.Background(), nil, space.Config{Space: "main", NATSURL: "nats://127.0.0.1:4222", StateDir: "s", SecretsDir: "s", ControllerLifetime: time.Second})
	if !errors.Is(err, messages.Malformed) {
		t.Errorf("it starts: %v", err)
	}
}
