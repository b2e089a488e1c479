package devbroker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/devbroker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const patience = 30 * time.Second

func start(t *testing.T, server *devbroker.Server) (*supervisor.Tree, error) {
	t.Helper()
	system := actor.NewActorSystem()
	t.Cleanup(system.Shutdown)
	return supervisor.Start(t.Context(), system, supervisor.Spec{Name: "dev",
		Group: &supervisor.Group{Children: []supervisor.Spec{devbroker.Spec("broker", server)}}})
}

func closeTree(t *testing.T, tree *supervisor.Tree) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := tree.Close(ctx); err != nil {
		t.Error(err)
	}
}

// However the leaf dies, the same broker stands again, with what it stored, and
// its clients come back by themselves; and a close ends it.
func TestTheBrokerComesBack(t *testing.T) {
	dir := natsdtest.Chain(t, "acme")
	server, err := devbroker.New(devbroker.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if server.URL() != "" || server.Address() != devbroker.DefaultAddress {
		t.Errorf("before it runs it is at %s, %s", server.URL(), server.Address())
	}
	tree, err := start(t, server)
	if err != nil {
		t.Fatal(err)
	}
	events := tree.Events(64)
	defer events.Close()
	url := server.URL()
	client := natsdtest.Connect(t, url, natsdtest.Load(t, dir, "acme"), trust.DATA, natsdtest.Everything(),
		nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	js, err := jetstream.New(client)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	for _, how := range []supervisor.How{supervisor.Panic, supervisor.Stop, supervisor.Disconnect} {
		killed, err := tree.Kill("broker", how)
		if err != nil {
			t.Fatal(err)
		}
		awaitOpened(t, events, killed.Generation+1)
		if server.URL() != url {
			t.Errorf("after %s it moved to %s", how, server.URL())
		}
		natsdtest.Eventually(t, "the client is back and finds its row", func() error {
			_, err := kv.Get(t.Context(), "k")
			return err
		})
	}
	closeTree(t, tree)
	if _, err := nats.Connect(url, nats.NoReconnect()); !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("after the close: %v", err)
	}
}

func awaitOpened(t *testing.T, events *supervisor.Subscription, generation uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		event, err := events.Next(ctx)
		if err != nil {
			t.Fatalf("life %d does not open: %v", generation, err)
		}
		if opened, is := event.(supervisor.Opened); is && opened.Generation == generation {
			return
		}
	}
}

func TestWhatCannotStartIsSaid(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	for name, config := range map[string]devbroker.Config{
		"no chain":             {Dir: t.TempDir()},
		"the address is taken": {Dir: natsdtest.Chain(t, "acme"), Address: space.Server.Address()},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := devbroker.New(config)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := start(t, server)
			if err == nil {
				closeTree(t, tree)
				t.Fatal("it started")
			}
		})
	}
	for name, config := range map[string]devbroker.Config{
		"no directory": {Address: "127.0.0.1:0"},
		"no port":      {Dir: "x", Address: "127.0.0.1"},
	} {
		if _, err := devbroker.New(config); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A start in the same process waits for the end of the former run: two servers
// never share the streams.
func TestStartEndsTheFormerRun(t *testing.T) {
	server, err := devbroker.New(devbroker.Config{Dir: natsdtest.Chain(t, "acme")})
	if err != nil {
		t.Fatal(err)
	}
	first, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Ended():
	default:
		t.Error("both run")
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
