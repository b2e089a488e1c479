package natsd_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

func TestServerKeepsItsStreamsAndItsAddress(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	put(t, space.URL(), space.Material, 1)
	before, id := space.URL(), space.Server.ID()
	space.Restart(t)
	if space.URL() != before {
		t.Errorf("it moved from %s to %s", before, space.URL())
	}
	if space.Server.ID() == id {
		t.Error("the server id did not change, so nobody could tell that it was restarted")
	}
	nc := natsdtest.Connect(t, space.URL(), space.Material, trust.CTRL, natsdtest.Everything())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "kept")
	if err != nil {
		t.Fatalf("the stream is gone: %v", err)
	}
	if _, err := kv.Get(t.Context(), "k"); err != nil {
		t.Errorf("the row is gone: %v", err)
	}
}

// put makes a bucket with one row in CTRL.
func put(t *testing.T, url string, m *trust.Material, replicas int) {
	t.Helper()
	nc := natsdtest.Connect(t, url, m, trust.CTRL, natsdtest.Everything())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "kept", Replicas: replicas})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
}

func TestStartRefuses(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cfg  natsd.Config
		want string
	}{
		"no chain":             {natsd.Config{Dir: t.TempDir()}, "no such file"},
		"the address is taken": {natsd.Config{Dir: space.Dir, Listen: space.Server.Address(), StoreDir: t.TempDir()}, "address already in use"},
		"no place for streams": {natsd.Config{Dir: space.Dir, Listen: "127.0.0.1:0", StoreDir: blocked}, "storage"},
		"no port":              {natsd.Config{Dir: space.Dir, Listen: "127.0.0.1"}, "port"},
		"port is no number":    {natsd.Config{Dir: space.Dir, Listen: "127.0.0.1:http"}, "port"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, err := natsd.Start(ctx, tc.cfg)
			if err == nil {
				natsdtest.Stop(t, s)
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want it to say %q", err, tc.want)
			}
			if ctx.Err() != nil {
				t.Errorf("it found out only when the time was up: %v", err)
			}
		})
	}
}

func TestStopDropsClientsAndMayBeRepeated(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	gone := make(chan struct{})
	natsdtest.Connect(t, space.URL(), space.Material, trust.DATA, natsdtest.Everything(), nats.NoReconnect(),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { close(gone) }))
	natsdtest.Stop(t, space.Server)
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the client was not dropped")
	}
	select {
	case <-space.Server.Done():
	default:
		t.Error("it has stopped and is not done")
	}
	natsdtest.Stop(t, space.Server)
}

func TestClusterKeepsThreeReplicasAcrossARestart(t *testing.T) {
	dir := natsdtest.Chain(t, "acme")
	m := natsdtest.Load(t, dir, "acme")
	group := natsdtest.Cluster(t, dir, 3)
	put(t, group.URL(), m, 3)

	address := group.Server(0).Address()
	natsdtest.Stop(t, group.Server(0))
	nc := natsdtest.Connect(t, group.Server(1).URL(), m, trust.CTRL, natsdtest.Everything())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	natsdtest.Eventually(t, "two of three servers take a write", func() error {
		kv, err := js.KeyValue(t.Context(), "kept")
		if err != nil {
			return err
		}
		_, err = kv.Put(t.Context(), "k", []byte("w"))
		return err
	})
	if err := group.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if group.Server(0).Address() != address {
		t.Errorf("it moved from %s to %s", address, group.Server(0).Address())
	}
	natsdtest.Eventually(t, "the third server catches up", func() error {
		kv, err := js.KeyValue(t.Context(), "kept")
		if err != nil {
			return err
		}
		status, err := kv.Status(t.Context())
		if err != nil {
			return err
		}
		for _, peer := range status.(*jetstream.KeyValueBucketStatus).StreamInfo().Cluster.Replicas {
			if !peer.Current || peer.Offline {
				return &notYet{peer.Name}
			}
		}
		return nil
	})
}

type notYet struct{ name string }

func (e *notYet) Error() string { return e.name + " is not current" }

func TestSeparateProcessRunsOnTheSameConf(t *testing.T) {
	dir := natsdtest.Chain(t, "acme")
	m := natsdtest.Load(t, dir, "acme")
	path := natsdtest.Build(t)
	p := natsdtest.Run(t, path, dir)
	put(t, p.URL(), m, 1)
	p.Stop(t)
	again := natsdtest.Run(t, path, dir)
	again.Kill(t)
}
