package evict_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

func TestFiveConnectionsByAnyDoor(t *testing.T) {
	t.Parallel()
	s, roots, websocket := everyDoor(t)
	d := s.openDoor()
	var victims []*nats.Conn
	for _, dial := range []struct {
		url  string
		opts []nats.Option
	}{{url: s.url}, {url: s.url}, {url: s.url}, {url: "tls" + strings.TrimPrefix(s.url, "nats"), opts: []nats.Option{nats.Secure(&tls.Config{RootCAs: roots})}}, {url: websocket}} {
		nc, err := s.dial(dial.url, token(1, uidA), dial.opts...)
		s.must(err)
		victims = append(victims, nc)
	}
	if _, err := victims[3].TLSConnectionState(); err != nil {
		t.Errorf("it is not encrypted: %v", err)
	}
	other, stranger := s.client(token(1, uidB)), s.client(token(2, uidA))
	v := s.servers()
	d.freeze(target(1))
	p := s.gone(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: []messages.Target{{Principal: principal(1), UID: uidA}}})
	for _, nc := range victims {
		s.dropped(nc)
	}
	if !other.IsConnected() {
		t.Error("another life of the principal was dropped")
	}
	// The uid is the stranger's as well: it names one life, whatever it is called.
	s.dropped(stranger)
	if p.out.Evicted != 6 || p.out.Vacuous || p.out.Eviction != messages.EvictionSwept || !slices.Equal(p.out.Servers, []string{"authplane_acme"}) ||
		!slices.Equal(p.out.Learnt, p.out.Servers) {
		t.Errorf("got %+v", p.out)
	}
	if d.asked != 1 || v.settling.Load() != 1 {
		t.Errorf("the responders were asked %d times, of %d sweeps", d.asked, v.settling.Load())
	}
	// TLS makes the server wait longer, so the word of the responders pays.
	if p.took >= 3*time.Second {
		t.Errorf("it took %v although everybody had settled", p.took)
	}
	t.Logf("%d connections in %v, %d sweeps", p.out.Evicted, p.took, v.swept.Load())
}

func TestNobodyIsEvictedByMistake(t *testing.T) {
	t.Parallel()
	s := single(t)
	v := s.servers()
	for name, targets := range map[string][]messages.Target{
		"nobody":               nil,
		"a target of nobody":   {target(1), {}},
		"a misspelt owner":     {{Principal: messages.Principal{Owner: "u_alice", Actor: "laptop"}}},
		"a misspelt actor":     {{Principal: messages.Principal{Owner: principal(1).Owner, Actor: "lap-top"}}},
		"half a principal":     {{Principal: messages.Principal{Owner: principal(1).Owner}, UID: uidA}},
		"a misspelt life":      {{Principal: principal(1), UID: "A"}},
		"something for a user": {{User: "somebody"}},
	} {
		p := s.evict(evict.Ports{Servers: v}, evict.Ask{Targets: targets})
		if !errors.Is(p.err, messages.Malformed) {
			t.Errorf("%s: %v", name, p.err)
		}
	}
	if v.observed.Load()+v.swept.Load()+v.kicks.Load() > 0 {
		t.Error("somebody was asked")
	}
}

func TestNobodyIsThereFromTheStart(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	s.client(token(2, uidB))
	v := s.servers()
	p := s.gone(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: []messages.Target{target(1)}, Known: []string{"authplane_acme"}})
	if !p.out.Vacuous || p.out.Evicted != 0 || len(p.out.Learnt) > 0 || v.kicks.Load() > 0 {
		t.Errorf("got %+v after %d kicks", p.out, v.kicks.Load())
	}
	t.Logf("took %v", p.took)

	// A time that has passed need not be waited for, and nobody is asked to settle.
	asked := d.asked
	if p := s.gone(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: []messages.Target{target(1)}, Frozen: time.Now().Add(-time.Minute)}); p.took >= authTimeout || d.asked != asked {
		t.Errorf("it took %v", p.took)
	}
}

// However many there are, the sweeps are as few: who comes and goes among others
// between them changes nothing.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ principals, each int }{
		"one with 1,101 connections":   {1, 1101},
		"200 with 5 connections each":  {200, 5},
		"one with a single connection": {1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := single(t)
			d := s.openDoor()
			var mu sync.Mutex
			var victims []*nats.Conn
			crowd(tc.principals*tc.each, func(i int) {
				nc, err := s.dial(s.url, token(i%tc.principals, uidA))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				victims = append(victims, nc)
			})
			stop, churn := make(chan struct{}), sync.WaitGroup{} // closed to stop
			churn.Go(func() {
				for i := 1000; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if nc, err := s.dial(s.url, token(i, uidB)); err == nil {
						nc.Close()
					}
				}
			})
			var targets []messages.Target
			for i := range tc.principals {
				targets = append(targets, messages.Target{Principal: principal(i), UID: uidA})
			}
			v := s.servers()
			d.freeze(targets...)
			p := s.gone(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: targets})
			close(stop)
			churn.Wait()
			for _, nc := range victims {
				s.dropped(nc)
			}
			if p.out.Evicted != len(victims) {
				t.Errorf("got %+v", p.out)
			}
			// One that drops, two that prove, and one for each doubt the churn may leave.
			if n := v.swept.Load(); n < 3 || n > 4 || v.kicks.Load() != 1 {
				t.Errorf("%d sweeps and %d calls for kicks", n, v.kicks.Load())
			}
			t.Logf("%d connections in %v, %d sweeps", len(victims), p.took, v.swept.Load())
		})
	}
}

// Whom something lets in again as fast as he is dropped is never gone.
func TestAClientThatComesBackAtOnce(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	back := make(chan struct{}, 1) // one return at a time
	var clients sync.WaitGroup
	defer clients.Wait()
	stop := make(chan struct{}) // closed to stop
	defer close(stop)
	clients.Go(func() {
		for {
			closed := make(chan struct{})
			nc, err := nats.Connect(s.url, nats.UserCredentials(sentinel(s)), nats.Token(token(1, uidA)), nats.NoReconnect(),
				nats.Timeout(longEnough), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
			if err != nil {
				t.Error(err)
				return
			}
			back <- struct{}{}
			select {
			case <-closed:
			case <-stop:
				nc.Close()
				<-closed
				return
			}
		}
	})
	<-back
	v := s.servers()
	v.afterKick = func([]messages.ConnectionRef) { <-back }
	p := s.evict(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: []messages.Target{target(1)}})
	var why *evict.Unproved
	if !errors.Is(p.err, messages.EvictionUnproved) || !errors.As(p.err, &why) || len(why.Live) != 1 || why.Next() != "" {
		t.Fatalf("got %+v, %v", p.out, p.err)
	}
	if text := p.err.Error(); !strings.Contains(text, principal(1).String()) || !strings.Contains(text, "server authplane_acme") {
		t.Errorf("it does not say who is left, and where: %q", text)
	}
	if p.out.Eviction != "" || p.out.Servers != nil || p.out.Vacuous {
		t.Errorf("it failed, and says %+v", p.out)
	}
	if last := p.told[len(p.told)-1]; last.WaitingFor == "" || last.Done == 0 {
		t.Errorf("told last: %+v", last)
	}
}

// What becomes of a kick is a note: the sweep tells who is gone.
func TestAConnectionThatIsGoneBeforeItIsKicked(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	nc := s.client(token(1, uidA))
	v := s.servers()
	v.beforeKick = func([]messages.ConnectionRef) {
		nc.Close()
		natsdtest.Eventually(t, "the server has seen it go", func() error {
			if left := s.listed(target(1)); len(left) > 0 {
				return fmt.Errorf("%+v", left)
			}
			return nil
		})
	}
	p := s.gone(evict.Ports{Servers: v, Responders: d}, evict.Ask{Targets: []messages.Target{target(1)}})
	if p.out.Evicted != 0 || p.out.Vacuous {
		t.Errorf("got %+v", p.out)
	}
}

// A lost answer costs one more sweep; two lost ones end the try, and name the server.
func TestAnswersThatAreLost(t *testing.T) {
	t.Parallel()
	s := single(t)
	d := s.openDoor()
	lose := func(sweeps ...int) *servers {
		v := s.servers()
		v.afterSweep = func(n int, swept *messages.Swept) {
			if slices.Contains(sweeps, n) {
				name := swept.Servers[0].Name
				*swept = messages.Swept{Servers: []messages.SweptServer{{Name: name, ID: swept.Servers[0].ID}}, Doubts: []string{"server " + name + " does not answer"}}
			}
		}
		return v
	}
	for _, lost := range [][]int{{1}, {2}, {3}} {
		nc := s.client(token(1, uidA))
		p := s.gone(evict.Ports{Servers: lose(lost...), Responders: d}, evict.Ask{Targets: []messages.Target{target(1)}})
		if p.out.Evicted != 1 || p.out.Vacuous {
			t.Errorf("%v: got %+v", lost, p.out)
		}
		s.dropped(nc)
	}
	p := s.evict(evict.Ports{Servers: lose(1, 2, 3), Responders: d}, evict.Ask{Targets: []messages.Target{target(1)}})
	var why *evict.Unproved
	if !errors.As(p.err, &why) || !slices.Equal(why.Silent, []string{"authplane_acme"}) || why.Next() != "authplane roster forget authplane_acme" {
		t.Errorf("got %v", p.err)
	}
}

// A server that answers and was never met is learnt, and awaited from then on, until
// it is forgotten: also one that only somebody in the system account made up.
func TestAServerNobodyKnew(t *testing.T) {
	t.Parallel()
	s := single(t)
	const stranger = "NBEMIQO6KXGOVKZWGNUWSNMYQC2VVOJLMV7DLBBLCJWET55PGDV65GYW"
	v := s.servers()
	v.afterSweep = func(n int, swept *messages.Swept) {
		if n == 1 {
			swept.Servers = append(swept.Servers, messages.SweptServer{Name: "n9", ID: stranger, Whole: true})
		}
	}
	known := []string{"authplane_acme"}
	p := s.evict(evict.Ports{Servers: v}, evict.Ask{Targets: []messages.Target{target(1)}, Known: known, Frozen: time.Now().Add(-time.Minute)})
	var why *evict.Unproved
	if !errors.As(p.err, &why) || why.Next() != "authplane roster forget n9" || !slices.Equal(p.out.Learnt, []string{"n9"}) {
		t.Errorf("got %+v, %v", p.out, p.err)
	}
	if !says(why.Doubts, "server n9 does not answer") {
		t.Errorf("the doubts are %q", why.Doubts)
	}
	if last := p.told[len(p.told)-1]; last.Next != why.Next() || !strings.Contains(last.WaitingFor, "n9") {
		t.Errorf("told last: %+v", last)
	}
	if p := s.gone(evict.Ports{Servers: s.servers()}, evict.Ask{Targets: []messages.Target{target(1)}, Known: known}); len(p.out.Learnt) > 0 {
		t.Errorf("got %+v", p.out)
	}
}
