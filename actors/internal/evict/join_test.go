package evict_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// nth is the n-th principal, whatever his incarnation.
func nth(n int) messages.Target { return messages.Target{Principal: principal(n)} }

// hall is servers that are not there, and who is connected to them.
type hall struct {
	servers []messages.Server
	mu      sync.Mutex
	next    uint64
	has     map[messages.ConnectionRef]messages.LiveConnection
	swept   int // how often
}

func newHall(servers int) *hall {
	h := &hall{has: map[messages.ConnectionRef]messages.LiveConnection{}}
	for _, name := range three[:servers] {
		s := messages.Server{Name: name, ID: name, Answered: true, AuthTimeout: authTimeout}
		if servers > 1 {
			s.Cluster = "c"
		}
		h.servers = append(h.servers, s)
	}
	return h
}

// enter has the n-th principal connect to every server.
func (h *hall) enter(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.servers {
		h.next++
		c := messages.LiveConnection{ServerName: s.Name, User: principal(n).Name(), UID: uidA,
			ConnectionRef: messages.ConnectionRef{ServerID: s.ID, ClientID: h.next}}
		h.has[c.ConnectionRef] = c
	}
}

func (h *hall) Observe(context.Context, []string) (messages.Roster, error) {
	return messages.Roster{Servers: h.servers}, nil
}

func (h *hall) Sweep(_ context.Context, m messages.SweepConnections) (out messages.Swept, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.servers {
		out.Servers = append(out.Servers, messages.SweptServer{Name: s.Name, ID: s.ID, Whole: true})
	}
	if m.Account == string(trust.AUTH) {
		return out, nil // nobody is left who could answer
	}
	h.swept++
	for _, c := range h.has {
		if slices.ContainsFunc(m.Targets, func(t messages.Target) bool { return t.Principal.Name() == c.User }) {
			out.Connections = append(out.Connections, c)
		}
	}
	return out, nil
}

func (h *hall) Kick(_ context.Context, all []messages.ConnectionRef) (out []messages.KickResult, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ref := range all {
		delete(h.has, ref)
		out = append(out, messages.KickResult{ConnectionRef: ref, Outcome: messages.KickDone})
	}
	return out, nil
}

func (h *hall) Settle(context.Context, messages.SettleResponders) (messages.Settled, error) {
	return messages.Settled{}, nil
}

// company comes by a timetable.
type company struct {
	mu       sync.Mutex
	come     []evict.Joiner
	expected int
	all      chan struct{} // closed when nobody is expected
}

func expecting(n int) *company { return &company{expected: n, all: make(chan struct{})} }

func (c *company) arrive(j evict.Joiner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.come = append(c.come, j)
	if c.expected--; c.expected == 0 {
		close(c.all)
	}
}

func (c *company) Gathered() <-chan struct{} { return c.all }

func (c *company) Join(by time.Time) (joined []evict.Joiner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.come = slices.DeleteFunc(c.come, func(j evict.Joiner) bool {
		if j.Frozen.After(by) {
			return false
		}
		joined = append(joined, j)
		return true
	})
	return joined
}

// A crowd that comes while one waits is proved gone with it, after the newest freeze. It
// takes at most two sweeps more than one's three: that which drops them when all have
// come, and that which finds who was let in late.
func TestACrowdJoinsWhoWaits(t *testing.T) {
	const crowd = 200
	for name, servers := range map[string]int{"one server": 1, "three servers": 3} {
		for _, spread := range []time.Duration{0, time.Second, 2500 * time.Millisecond} {
			t.Run(name+" "+spread.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, c := newHall(servers), expecting(crowd)
					began := time.Now()
					for i := range crowd + 1 {
						h.enter(i)
					}
					comes := func(i int) time.Duration { return 10*time.Millisecond + spread*time.Duration(i)/crowd }
					newest := comes(crowd - 1)
					for i := range crowd {
						time.AfterFunc(comes(i), func() {
							c.arrive(evict.Joiner{Target: nth(i + 1), Frozen: time.Now(), Refuse: func(err error) { t.Error(err) }})
						})
					}
					ports := evict.Ports{Servers: h, Responders: h, Company: c}
					// The last one of them is let in as late as may be.
					time.AfterFunc(newest+authTimeout-time.Millisecond, func() { h.enter(crowd) })
					out, err := evict.Run(t.Context(), ports, evict.Ask{Targets: []messages.Target{nth(0)}, Frozen: began, Callouts: []string{"x"}}, nil)
					if took := time.Since(began); err != nil || took > spread+authTimeout+time.Second {
						t.Fatalf("after %v: %v", took, err)
					}
					for i := range crowd + 1 {
						if share := out.Of(nth(i)); share.Evicted < servers || share.Vacuous {
							t.Errorf("%d: %d dropped of %d, vacuous %v", i, share.Evicted, share.Met, share.Vacuous)
						}
					}
					if took := time.Since(began) - newest; servers > 1 && (out.Of(nth(crowd)).Evicted != 2*servers || took < authTimeout) {
						t.Errorf("proved %v after the last freeze, and %d dropped of who was let in late", took, out.Of(nth(crowd)).Evicted)
					}
					if want := 3 + 2; h.swept > want {
						t.Errorf("%d sweeps, want %d at most", h.swept, want)
					}
					t.Logf("%v, %d sweeps", time.Since(began), h.swept)
				})
			})
		}
	}
}

// Whoever comes all the time keeps nobody: who would take too long is left for later.
func TestAStreamOfOthersKeepsNobody(t *testing.T) {
	for name, servers := range map[string]int{"one server": 1, "three servers": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, c := newHall(servers), expecting(-1)
				began := time.Now()
				ctx, stop := context.WithCancel(t.Context())
				var stream sync.WaitGroup
				stream.Go(func() {
					tick := time.NewTicker(50 * time.Millisecond)
					defer tick.Stop()
					for i := 1; ; i++ {
						select {
						case <-tick.C:
							c.arrive(evict.Joiner{Target: nth(i), Frozen: time.Now()})
						case <-ctx.Done():
							return
						}
					}
				})
				_, err := evict.Run(ctx, evict.Ports{Servers: h, Responders: h, Company: c},
					evict.Ask{Targets: []messages.Target{nth(0)}, Frozen: began, Callouts: []string{"x"}}, nil)
				if took := time.Since(began); err != nil || took > authTimeout+6*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
				stop()
				stream.Wait()
				if h.swept > 4 || len(c.come) == 0 {
					t.Errorf("%d sweeps, %d left for later", h.swept, len(c.come))
				}
			})
		})
	}
}

// Who names nobody is refused alone; the others are proved for.
func TestOneWhoNamesNobodyJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newHall(3), expecting(4)
		h.enter(0)
		h.enter(1)
		var refused []error
		misspelt := nth(2)
		misspelt.Principal.Actor = "laptop.2"
		for _, bad := range []messages.Target{{}, misspelt, {UID: "x"}} {
			c.arrive(evict.Joiner{Target: bad, Refuse: func(err error) { refused = append(refused, err) }})
		}
		c.arrive(evict.Joiner{Target: nth(1), Refuse: func(err error) { t.Error(err) }})
		out, err := evict.Run(t.Context(), evict.Ports{Servers: h, Company: c}, evict.Ask{Targets: []messages.Target{nth(0)}}, nil)
		if err != nil || out.Of(nth(0)).Evicted != 3 || out.Of(nth(1)).Evicted != 3 {
			t.Errorf("%d dropped, %v", out.Evicted, err)
		}
		for _, err := range refused {
			if !errors.Is(err, messages.Malformed) {
				t.Errorf("refused with %v", err)
			}
		}
		if len(refused) != 3 {
			t.Errorf("%d were refused", len(refused))
		}
	})
}
