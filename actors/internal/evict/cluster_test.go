package evict_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

var three = []string{"n1", "n2", "n3"}

func TestACluster(t *testing.T) {
	t.Parallel()
	s, group := cluster(t)
	d := s.openDoor()
	ask := func(n int) evict.Ask { return evict.Ask{Targets: []messages.Target{target(n)}, Known: three} }

	// Two connections on two servers, each dropped on its own; nobody is asked to
	// settle, since it would prove nothing.
	var victims []*nats.Conn
	for i := range 2 {
		nc, err := s.dial(group.Server(i+1).URL(), token(1, uidA))
		s.must(err)
		victims = append(victims, nc)
	}
	d.freeze(target(1))
	v := s.servers()
	p := s.gone(evict.Ports{Servers: v, Responders: d}, ask(1))
	for _, nc := range victims {
		s.dropped(nc)
	}
	if p.out.Evicted != 2 || !slices.Equal(p.out.Servers, three) || len(p.out.Learnt) > 0 || d.asked > 0 {
		t.Errorf("got %+v, asked to settle %d times", p.out, d.asked)
	}
	if p.took < authTimeout {
		t.Errorf("it took only %v", p.took)
	}
	t.Logf("two connections on two servers: %v, %d sweeps, %d calls for kicks", p.took, v.swept.Load(), v.kicks.Load())

	// A late answer, on its way to a client of another server.
	for i, after := range []time.Duration{0, time.Second, authTimeout - 50*time.Millisecond} {
		l := d.lateClient(t, group.Server(i%3).URL(), token(10+i, uidA))
		d.freeze(target(10 + i))
		time.AfterFunc(after, l.letGo)
		p := s.gone(evict.Ports{Servers: s.servers(), Responders: d}, ask(10+i))
		s.missedNot(l, false)
		t.Logf("answered after %v: %v, %+v", after, p.took, p.out)
	}

	// A server that is stopped may come back with whoever it had.
	natsdtest.Stop(t, group.Server(2))
	old := ask(1)
	old.Frozen = time.Now().Add(-time.Minute)
	p = s.evict(evict.Ports{Servers: s.servers()}, old)
	var why *evict.Unproved
	if !errors.Is(p.err, messages.EvictionUnproved) || !errors.As(p.err, &why) || why.Next() != "authplane roster forget n3" ||
		!slices.Equal(why.Silent, []string{"n3"}) {
		t.Fatalf("got %+v, %v", p.out, p.err)
	}
	// Forgetting it is not enough while the leader of JetStream counts it.
	old.Known = three[:2]
	if p = s.evict(evict.Ports{Servers: s.servers()}, old); !errors.As(p.err, &why) || !slices.Equal(p.out.Learnt, []string{"n3"}) {
		t.Fatalf("got %+v, %v", p.out, p.err)
	}
	s.removePeer("n3")
	p = s.gone(evict.Ports{Servers: s.servers()}, old)
	if !slices.Equal(p.out.Servers, three[:2]) {
		t.Errorf("got %+v", p.out)
	}
	old.Known = three
	if p = s.evict(evict.Ports{Servers: s.servers()}, old); !errors.As(p.err, &why) || why.Next() != "authplane roster forget n3" {
		t.Errorf("it is known: %+v, %v", p.out, p.err)
	}
}

// removePeer has the leader of JetStream forget a server.
func (s *stage) removePeer(name string) {
	s.Helper()
	ended := make(chan struct{})
	nc, err := nats.Connect(s.url, nats.UserCredentials(trust.BreakGlassSYS(s.dir)), nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
	s.must(err)
	defer func() { nc.Close(); <-ended }()
	natsdtest.Eventually(s, "the leader forgets it", func() error {
		answer, err := nc.Request("$JS.API.SERVER.REMOVE", []byte(`{"peer":"`+name+`"}`), 5*time.Second)
		if err == nil && strings.Contains(string(answer.Data), `"error"`) {
			err = errors.New(string(answer.Data))
		}
		return err
	})
	v := s.servers()
	natsdtest.Eventually(s, "it is on no roster", func() error {
		if r, err := v.Observe(s.Context(), nil); err != nil || len(r.Doubts) > 0 {
			return fmt.Errorf("%+v, %w", r, err)
		}
		return nil
	})
}

// A server that stands still for a moment is waited for. One that does for longer may
// have anybody.
func TestAServerThatStandsStill(t *testing.T) {
	t.Parallel()
	s, processes := processes(t)
	d := s.openDoor()
	nc, err := s.dial(processes[2].URL(), token(1, uidA))
	s.must(err)
	d.freeze(target(1))
	ask := evict.Ask{Targets: []messages.Target{target(1)}, Known: three, Frozen: time.Now().Add(-time.Minute)}

	processes[2].Pause(t)
	p := s.evict(evict.Ports{Servers: s.servers()}, ask)
	var why *evict.Unproved
	if !errors.As(p.err, &why) || why.Next() != "authplane roster forget n3" {
		processes[2].Resume(t)
		t.Fatalf("got %+v, %v", p.out, p.err)
	}
	time.AfterFunc(500*time.Millisecond, func() { processes[2].Resume(t) })
	p = s.gone(evict.Ports{Servers: s.servers()}, ask)
	s.dropped(nc)
	if p.out.Evicted != 1 || !slices.Equal(p.out.Servers, three) {
		t.Errorf("got %+v", p.out)
	}
	t.Logf("took %v", p.took)
}

// processes is a stage with three servers, n1 to n3, in processes of their own.
func processes(t *testing.T) (*stage, []*natsdtest.Process) {
	t.Helper()
	dir := natsdtest.Chain(t, "acme")
	conf, err := os.ReadFile(trust.ServerConf(dir))
	if err != nil {
		t.Fatal(err)
	}
	path := natsdtest.Build(t)
	ports := freePorts(t, 3)
	var routes []string
	for _, port := range ports {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", port))
	}
	var servers []*natsdtest.Process
	for i := range ports {
		own := t.TempDir() // every server keeps its streams apart
		if err := os.WriteFile(trust.ServerConf(own), []byte(strings.ReplaceAll(string(conf), dir, own)), 0o600); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, natsdtest.Run(t, path, own, "-n", three[i], "--cluster_name", "authplane",
			"--cluster", routes[i], "--routes", strings.Join(routes, ",")))
	}
	s := &stage{TB: t, dir: dir, url: servers[0].URL(), m: natsdtest.Load(t, dir, "acme")}
	s.allAnswer()
	return s, servers
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
