package natsdtest

import (
	"context"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// patience bounds every start and stop of a test; it is generous, since tests run
// under the race detector on small machines.
const patience = time.Minute

// Chain makes a trust chain in a directory of the test, for a server on any free
// port, and returns the directory.
func Chain(t testing.TB, space string) string {
	t.Helper()
	dir := t.TempDir()
	if err := trust.Create(t.Context(), trust.Options{Dir: dir, Space: space, NATSURL: "nats://127.0.0.1:0"}); err != nil {
		t.Fatalf("make a chain: %v", err)
	}
	return dir
}

// Load loads the material of a chain made by Chain.
func Load(t testing.TB, dir, space string) *trust.Material {
	t.Helper()
	m, err := trust.Load(t.Context(), trust.Directory(trust.SecretsDir(dir)), space)
	if err != nil {
		t.Fatalf("load the chain: %v", err)
	}
	return m
}

// Space is a chain with an embedded server that runs on it.
type Space struct {
	Name, Dir string
	Material  *trust.Material
	Server    *natsd.Server
}

// NewSpace makes a chain and starts a server on it until the test ends.
func NewSpace(t testing.TB, name string) *Space {
	t.Helper()
	dir := Chain(t, name)
	return &Space{Name: name, Dir: dir, Material: Load(t, dir, name), Server: Start(t, natsd.Config{Dir: dir})}
}

// URL is where the space's server is reached.
func (s *Space) URL() string { return s.Server.URL() }

// Restart stops the server and starts it again where it listened.
func (s *Space) Restart(t testing.TB) {
	t.Helper()
	address := s.Server.Address()
	Stop(t, s.Server)
	s.Server = Start(t, natsd.Config{Dir: s.Dir, Listen: address})
}

// Start starts a server until the test ends.
func Start(t testing.TB, cfg natsd.Config) *natsd.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := natsd.Start(ctx, cfg)
	if err != nil {
		t.Fatalf("start a server: %v", err)
	}
	t.Cleanup(func() { Stop(t, s) })
	return s
}

// Stop stops a server and waits for it.
func Stop(t testing.TB, s *natsd.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("stop a server: %v", err)
	}
}

// Cluster starts servers on the chain in dir, joined into one cluster, until the
// test ends.
func Cluster(t testing.TB, dir string, size int) *natsd.Group {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := natsd.Cluster(ctx, natsd.ClusterConfig{Dir: dir, Size: size, StoreRoot: t.TempDir()})
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := g.Stop(ctx); err != nil {
			t.Errorf("stop a cluster: %v", err)
		}
	})
	return g
}
