package evict_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// hosted is what an account can see and do without the system account.
type hosted struct {
	sweep func() (messages.Swept, error)
	asked int
}

func (h *hosted) Observe(context.Context, []string) (messages.Roster, error) {
	return messages.Roster{}, messages.InternalFault
}

func (h *hosted) Sweep(context.Context, messages.SweepConnections) (messages.Swept, error) {
	h.asked++
	return h.sweep()
}

func (h *hosted) Kick(context.Context, []messages.ConnectionRef) ([]messages.KickResult, error) {
	return nil, messages.KeysUnusable
}

func TestWhereServersCannotBeAskedTimeProves(t *testing.T) {
	one := messages.LiveConnection{User: "u_x-laptop", ServerName: "hosted", ConnectionRef: messages.ConnectionRef{ServerID: "N", ClientID: 1}}
	blind := messages.Swept{Doubts: []string{"nobody says how many servers the cluster has"}}
	seen := blind
	seen.Connections = []messages.LiveConnection{one}
	const lifetime = 10 * time.Minute
	for name, tc := range map[string]struct {
		sweep   func(since time.Duration) (messages.Swept, error)
		fails   error
		vacuous bool
	}{
		"somebody is seen until then": {sweep: func(since time.Duration) (messages.Swept, error) {
			return map[bool]messages.Swept{true: seen, false: blind}[since < lifetime], nil
		}},
		"nobody is seen":                   {sweep: func(time.Duration) (messages.Swept, error) { return blind, nil }},
		"nobody can be asked":              {sweep: func(time.Duration) (messages.Swept, error) { return messages.Swept{}, messages.BrokerAway }},
		"one server, and nobody was there": {sweep: func(time.Duration) (messages.Swept, error) { return messages.Swept{}, nil }, vacuous: true},
		"somebody stays":                   {sweep: func(time.Duration) (messages.Swept, error) { return seen, nil }, fails: messages.EvictionUnproved},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				h := &hosted{sweep: func() (messages.Swept, error) { return tc.sweep(time.Since(began)) }}
				var told []evict.Progress
				ask := evict.Ask{Targets: []messages.Target{target(1)}, Expires: began.Add(lifetime)}
				out, err := evict.Run(t.Context(), evict.Ports{Servers: h}, ask, func(p evict.Progress) { told = append(told, p) })
				if !errors.Is(err, tc.fails) || tc.fails == nil && out.Eviction != messages.EvictionExpired || out.Vacuous != tc.vacuous {
					t.Errorf("got %+v, %v", out, err)
				}
				if took := time.Since(began); took < lifetime || took > lifetime+10*time.Second {
					t.Errorf("it took %v", took)
				}
				waits := func(p evict.Progress) bool { return p.Total > 600 && p.Done == 300 && p.WaitingFor != "" }
				if !slices.ContainsFunc(told, waits) {
					t.Errorf("nothing was told half-way: %+v", told[:min(3, len(told))])
				}

				ctx, cancel := context.WithCancelCause(t.Context())
				gaveUp := errors.New("somebody gave up")
				time.AfterFunc(time.Minute, func() { cancel(gaveUp) })
				began = time.Now()
				ask.Expires = began.Add(lifetime)
				out, err = evict.Run(ctx, evict.Ports{Servers: h}, ask, nil)
				if !errors.Is(err, gaveUp) || out.Eviction != "" || time.Since(began) != time.Minute {
					t.Errorf("given up: %+v, %v after %v", out, err, time.Since(began))
				}
			})
		})
	}
}

// The server drops whoever's permission has run out. The account need not see it: what
// it asks of the system never arrives.
func TestTheServerDropsWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	d.lifetime = 2 * time.Second
	nc := s.client(token(1, uidA), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // or the library prints it
	d.freeze(target(1))
	own := sweep.NewOwnObserver(natsdtest.Connect(t, s.url, s.m, trust.DATA, natsdtest.Everything(), nats.NoReconnect()), 200*time.Millisecond)
	h := &hosted{sweep: func() (messages.Swept, error) {
		return own.Connections(t.Context(), "", messages.Roster{}, []messages.Target{target(1)})
	}}
	p := s.gone(evict.Ports{Servers: h}, evict.Ask{Targets: []messages.Target{target(1)}, Expires: time.Now().Add(d.lifetime)})
	s.dropped(nc)
	if p.out.Eviction != messages.EvictionExpired || p.out.Vacuous || len(p.out.Servers) > 0 || h.asked != 2 {
		t.Errorf("got %+v after %d sweeps", p.out, h.asked)
	}
}
