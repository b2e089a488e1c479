package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// ClusterConfig says which cluster to start.
type ClusterConfig struct {
	// Dir is the directory of the trust chain that all servers share.
	Dir string
	// Size is how many servers there are.
	Size int
	// StoreRoot is below which each server keeps its streams.
	StoreRoot string
	// Logger hears what the servers say; nil for nobody.
	Logger *slog.Logger
}

// Group is a cluster of servers on the loopback interface, joined by routes.
type Group struct {
	configs []Config
	servers []*Server
}

// Cluster starts Size servers and returns once they agree on a JetStream leader
// and know each other. When it fails, nothing is left running.
func Cluster(ctx context.Context, cfg ClusterConfig) (*Group, error) {
	ports, err := freePorts(cfg.Size)
	if err != nil {
		return nil, err
	}
	g := &Group{servers: make([]*Server, cfg.Size)}
	for i, port := range ports {
		name := fmt.Sprintf("n%d", i+1)
		g.configs = append(g.configs, Config{
			Dir: cfg.Dir, Listen: "127.0.0.1:0", Name: name, StoreDir: filepath.Join(cfg.StoreRoot, name), Logger: cfg.Logger,
			routes: &routing{cluster: "authplane", port: port, peers: peers(ports)},
		})
	}
	for i := range g.configs {
		if err := g.Start(ctx, i); err != nil {
			return nil, errors.Join(err, g.Stop(context.WithoutCancel(ctx)))
		}
	}
	if err := g.awaitLeader(ctx); err != nil {
		return nil, errors.Join(err, g.Stop(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// freePorts finds ports that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all at once, so that no port comes twice
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func peers(ports []int) []*url.URL {
	var urls []*url.URL
	for _, port := range ports {
		urls = append(urls, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	return urls
}

// Start starts the i-th server, from 0, again where it listened before.
func (g *Group) Start(ctx context.Context, i int) error {
	s, err := Start(ctx, g.configs[i])
	if err != nil {
		return err
	}
	g.servers[i] = s
	g.configs[i].Listen = s.Address()
	return nil
}

// Server is the i-th server, from 0, nil when it was never started.
func (g *Group) Server(i int) *Server { return g.servers[i] }

// Size is how many servers there are, running or not.
func (g *Group) Size() int { return len(g.servers) }

// URL lists where clients reach the servers, comma-separated.
func (g *Group) URL() string {
	var urls []string
	for _, s := range g.servers {
		urls = append(urls, s.URL())
	}
	return strings.Join(urls, ",")
}

// Stop stops every server and waits until they are gone.
func (g *Group) Stop(ctx context.Context) error {
	var failures []error
	for _, s := range g.servers {
		if s != nil {
			failures = append(failures, s.Stop(ctx))
		}
	}
	return errors.Join(failures...)
}

// awaitLeader looks until one server leads JetStream and counts all as its peers;
// the servers have no event for it.
func (g *Group) awaitLeader(ctx context.Context) error {
	tick := time.NewTicker(readiness)
	defer tick.Stop()
	for {
		for _, s := range g.servers {
			if s.native.JetStreamIsLeader() && len(s.native.JetStreamClusterPeers()) == len(g.servers) {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the cluster found no leader: %w", ctx.Err())
		}
	}
}
