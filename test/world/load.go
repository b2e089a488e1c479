package world

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// Load is people connecting, and an operator granting and revoking, all the time.
type Load struct {
	w      *World
	person Person
	let    chan struct{} // capacity 1: somebody came in since it was read last
	all    sync.WaitGroup

	mu      sync.Mutex
	granted map[string]string // uid by "owner.actor", acknowledged
	revoked map[string]bool   // acknowledged
	wrong   []string          // whatever must not happen
	failed  []string          // what was refused or not answered
}

// StartLoad begins it, with somebody granted for it, until ctx ends.
func StartLoad(ctx context.Context, w *World) *Load {
	l := &Load{w: w, person: w.Person("steady", "laptop", "demo.>"), let: make(chan struct{}, 1),
		granted: map[string]string{}, revoked: map[string]bool{}}
	for range 3 {
		l.all.Go(func() { l.connect(ctx) })
	}
	l.all.Go(func() { l.operate(ctx) })
	return l
}

func (l *Load) connect(ctx context.Context) {
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
func (l *Load) operate(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		sub := fmt.Sprintf("passer-by-%d", i)
		var g Grant
		asked := map[string]any{"sub": sub, "actor": "laptop", "publish": []string{"demo.>"}, "subscribe": []string{"demo.>"}}
		if status := l.w.Call("POST", "/v1/grants", asked, &g); status != http.StatusCreated {
			l.note(func() { l.failed = append(l.failed, fmt.Sprintf("grant %s: %d", sub, status)) })
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
		if status := l.w.Call("DELETE", p.Path(), nil, nil); status != http.StatusOK {
			l.note(func() { l.failed = append(l.failed, fmt.Sprintf("revoke %s: %d", sub, status)) })
			continue
		}
		l.note(func() { l.revoked[key] = true })
		if nc, err := p.Dial(nats.Timeout(time.Second)); err == nil {
			nc.Close()
			l.note(func() { l.wrong = append(l.wrong, key+" was let in after its revocation was acknowledged") })
		}
	}
}

func (l *Load) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// Wait returns when everybody has gone home, after ctx has ended.
func (l *Load) Wait() { l.all.Wait() }

// Failed lists what was refused or not answered, each with the status at its end.
func (l *Load) Failed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failed)
}

// Check compares what is recorded with what was acknowledged.
func (l *Load) Check(t testing.TB) {
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

// AwaitConnect waits for a connect that began after now to succeed.
func (l *Load) AwaitConnect(within time.Duration) bool {
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
