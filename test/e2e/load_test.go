package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// load is people connecting, and an operator granting and revoking, all the time.
type load struct {
	w      *world.World
	person world.Person
	let    chan struct{} // capacity 1: somebody came in since it was read last
	all    sync.WaitGroup

	mu      sync.Mutex
	granted map[string]string // uid by "owner.actor", acknowledged
	revoked map[string]bool   // acknowledged
	wrong   []string          // whatever must not happen
	failed  []string          // what was refused or not answered
}

func startLoad(ctx context.Context, w *world.World) *load {
	l := &load{w: w, person: w.Person("steady", "laptop", "demo.>"), let: make(chan struct{}, 1),
		granted: map[string]string{}, revoked: map[string]bool{}}
	for range 3 {
		l.all.Go(func() { l.connect(ctx) })
	}
	l.all.Go(func() { l.operate(ctx) })
	return l
}

func (l *load) connect(ctx context.Context) {
	for ctx.Err() == nil {
		if nc, err := l.person.Dial(nats.Timeout(time.Second)); err == nil {
			nc.Close()
			select {
			case l.let <- struct{}{}:
			default:
			}
		}
	}
}

// operate grants, lets in, revokes, and tries to come in again, each with somebody
// new. Only what was acknowledged counts.
func (l *load) operate(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		sub := fmt.Sprintf("passer-by-%d", i)
		var g world.Grant
		if l.w.Call("POST", "/v1/grants", map[string]any{"sub": sub, "actor": "laptop", "publish": []string{"demo.>"}, "subscribe": []string{"demo.>"}}, &g) != http.StatusCreated {
			l.note(func() { l.failed = append(l.failed, "grant "+sub) })
			continue
		}
		key := g.Owner + "." + g.Actor
		l.note(func() { l.granted[key] = g.UID })
		token, status := l.w.Exchange(sub, "laptop")
		if status != http.StatusOK {
			l.note(func() { l.failed = append(l.failed, fmt.Sprintf("exchange %s: %d", sub, status)) })
			continue
		}
		p := l.w.With(g, token)
		if l.w.Call("DELETE", p.Path(), nil, nil) != http.StatusOK {
			l.note(func() { l.failed = append(l.failed, "revoke "+sub) })
			continue
		}
		l.note(func() { l.revoked[key] = true })
		if nc, err := p.Dial(nats.Timeout(time.Second)); err == nil {
			nc.Close()
			l.note(func() { l.wrong = append(l.wrong, key+" was let in after its revocation was acknowledged") })
		}
	}
}

func (l *load) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// check compares what is recorded with what was acknowledged.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wrong {
		t.Error(w)
	}
	var list struct {
		Grants []struct{ Owner, Actor, UID, State string }
	}
	l.w.Call("GET", "/v1/grants", nil, &list)
	found := map[string]string{}
	for _, g := range list.Grants {
		found[g.Owner+"."+g.Actor] = g.UID + " " + g.State
	}
	for key, uid := range l.granted {
		if want := uid + " revoked"; l.revoked[key] && found[key] != want {
			t.Errorf("%s: recorded %q, acknowledged %q", key, found[key], want)
		} else if found[key] != uid+" live" && found[key] != want {
			t.Errorf("%s: recorded %q, acknowledged uid %s", key, found[key], uid)
		}
	}
	if len(l.revoked) == 0 {
		t.Error("the load did nothing")
	}
}

// awaitConnect waits for a connect that began after now to succeed.
func (l *load) awaitConnect(within time.Duration) bool {
	late := time.After(within)
	for range 5 { // what the channel holds, and what each of three was just doing
		select {
		case <-l.let:
		case <-late:
			return false
		}
	}
	return true
}

// TestKillsUnderLoad kills every leaf in every way under a load: no acknowledged
// write is lost, nobody is admitted wrongly, and connects go on in time.
func TestKillsUnderLoad(t *testing.T) {
	w := world.Open(t)
	ctx, stop := context.WithCancel(context.Background())
	l := startLoad(ctx, w)
	for _, how := range []string{"panic", "stop", "disconnect"} {
		for _, a := range w.Leaves() {
			path, generation, err := w.Space.Kill(ctx, a.Path, how)
			if err != nil {
				continue // the exchange has no connection to lose
			}
			if !l.awaitConnect(healsWithin) {
				t.Errorf("no connect within %s of the %s of %s", healsWithin, how, a.Path)
			}
			w.AwaitLife(path, generation+1)
		}
	}
	w.AwaitState(messages.SpaceReady)
	stop()
	l.all.Wait()
	l.check(t)
}

// TestBrokerKilledUnderLoad kills the broker and starts it again under a load.
func TestBrokerKilledUnderLoad(t *testing.T) {
	w := world.Open(t)
	ctx, stop := context.WithCancel(context.Background())
	l := startLoad(ctx, w)
	for range 3 {
		if !l.awaitConnect(world.Patience) {
			t.Fatal("no connect before")
		}
		w.StopBroker()
		w.AwaitState(messages.SpaceUnavailable)
		w.RestartBroker()
		w.AwaitState(messages.SpaceReady)
		if !l.awaitConnect(healsWithin) {
			t.Errorf("no connect within %s of the broker's return", healsWithin)
		}
	}
	stop()
	l.all.Wait()
	l.check(t)
}
