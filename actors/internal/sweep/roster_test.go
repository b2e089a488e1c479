package sweep_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

func TestTheRosterOfOneServer(t *testing.T) {
	s, space := single(t)
	o := s.observer()
	began := time.Now()
	r := s.roster(o)
	if took := time.Since(began); took >= sweep.RosterPatience {
		t.Errorf("it waited %v although nobody else was awaited", took)
	}
	if len(r.Doubts) > 0 || len(r.Servers) != 1 || !sweep.Single(r) {
		t.Fatalf("got %+v", r)
	}
	if one := r.Servers[0]; one.ID != space.Server.ID() || one.Name != space.Server.Name() || !one.Answered || one.Cluster != "" {
		t.Errorf("got %+v", one)
	}
	if longest, ok := sweep.Longest(r); !ok || longest != 2*time.Second {
		t.Errorf("a client may be connecting for %v, %v", longest, ok)
	}

	r = s.roster(o, "gone")
	if names(r) != space.Server.Name()+" gone?" || !says(r.Doubts, "authplane roster forget gone") || sweep.Single(r) {
		t.Errorf("with a server known before that is not there: %+v", r)
	}
	if _, ok := sweep.Longest(r); ok {
		t.Error("it knows the time limits of a server that did not answer")
	}
}

// Nobody but the one that leads JetStream tells of a server that was stopped.
func TestAStoppedServerStaysOnTheRoster(t *testing.T) {
	t.Parallel()
	s, group := cluster(t)
	natsdtest.Eventually(t, "all three answer", s.allAnswer(s.observer()))
	natsdtest.Stop(t, group.Server(0))
	o := s.observerAt(group.Server(2).URL())
	natsdtest.Eventually(t, "it is missing", func() error {
		if r := s.roster(o); names(r) != "n1? n2 n3" || !says(r.Doubts, "roster forget n1") || !says(r.Doubts, "peer-remove n1") || len(r.Doubts) > 2 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	if err := group.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	natsdtest.Eventually(t, "all three answer again", s.allAnswer(o))
}

// allAnswer reports what is missing of three servers.
func (s *stage) allAnswer(o *sweep.Observer) func() error {
	return func() error {
		if r := s.roster(o); names(r) != "n1 n2 n3" || len(r.Doubts) > 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	}
}

// A server that stands still answers nobody, and is still counted.
func TestAServerThatStandsStillIsMissing(t *testing.T) {
	t.Parallel()
	s, servers := processes(t)
	o := s.observer()
	natsdtest.Eventually(t, "all three answer", s.allAnswer(o))
	whole := s.roster(o)
	servers[2].Pause(t)
	defer servers[2].Resume(t)
	natsdtest.Eventually(t, "it is missing", func() error {
		r := s.roster(o)
		if len(r.Doubts) == 0 {
			return errors.New("no doubt")
		}
		if s := names(r); s != "n1 n2" && s != "n1 n2 n3?" {
			return errors.New(s)
		}
		return nil
	})
	swept, err := o.Connections(t.Context(), s.account("CTRL"), whole, nil)
	s.must(err)
	if !says(swept.Doubts, "server n3 does not answer") {
		t.Errorf("the sweep has no doubt about it: %+v", swept)
	}
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
	routes := make([]string, len(ports))
	for i, port := range ports {
		routes[i] = fmt.Sprintf("nats-route://127.0.0.1:%d", port)
	}
	var servers []*natsdtest.Process
	for i, port := range ports {
		own := t.TempDir() // every server keeps its streams apart
		if err := os.WriteFile(trust.ServerConf(own), []byte(strings.ReplaceAll(string(conf), dir, own)), 0o600); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, natsdtest.Run(t, path, own, "-n", fmt.Sprintf("n%d", i+1), "--cluster_name", "authplane",
			"--cluster", fmt.Sprintf("nats-route://127.0.0.1:%d", port), "--routes", strings.Join(routes, ",")))
	}
	return &stage{TB: t, dir: dir, url: servers[0].URL(), m: natsdtest.Load(t, dir, "acme")}, servers
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
