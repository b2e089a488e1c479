package space_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// On three replicas the leader is proved over the connection of the call itself, and
// the former process is dropped wherever it is connected.
func TestInstancesOnThreeReplicas(t *testing.T) {
	t.Parallel()
	dir := natsdtest.Chain(t, "main")
	group := natsdtest.Cluster(t, dir, 3)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	ctx, cancel := context.WithTimeout(t.Context(), 3*world.Patience)
	defer cancel()
	h, err := space.Start(ctx, system, space.Config{Space: "main", NATSURL: group.URL(), StateDir: t.TempDir(), SecretsDir: trust.SecretsDir(dir), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p := messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "svc"}
	if first, err := h.RegisterHostInstance(ctx, endpoint, instance, p); err != nil || first.Instance.Epoch != 0 {
		t.Fatalf("the first: %+v, %v", first, err)
	}
	second, err := h.RegisterHostInstance(ctx, endpoint, instance, p)
	if err != nil || second.Instance.Epoch != 1 {
		t.Fatalf("the second: %+v, %v", second, err)
	}
	grantOn(t, h, p)
	issued, err := h.IssueInstanceCredential(ctx, endpoint, instance, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	enter := func() error {
		nc, err := nats.Connect(group.Server(1).URL(), nats.UserCredentials(trust.SentinelCreds(dir)), nats.Token(issued.Bearer.Reveal()), nats.NoReconnect(), nats.Timeout(world.Patience))
		if err == nil {
			nc.Close()
		}
		return err
	}
	if err := enter(); err != nil {
		t.Errorf("the process that is registered: %v", err)
	}

	// One dies with the gate frozen, and its connection lives on another server than ours.
	dialer, err := broker.NewDialer(broker.Config{URL: group.Server(2).URL(), Space: "main", Material: natsdtest.Load(t, dir, "main"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dialer.Dial(ctx, broker.HostRegistration(endpoint, instance), func(*broker.Conn) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	store := ledger.NewStore(stream.New(conn.NATS(), stream.Config{Space: "main", Replicas: 3, Instance: instance}, stream.NewLanes(1)), ledger.DefaultPatience())
	_, err = ledger.NewRegistrar(store, nil, nil).Over(conn.User()).Hosting().
		Register(ctx, messages.RegisterInstance{Endpoint: endpoint, Instance: instance, Principal: p})
	if !errors.Is(err, messages.InstanceHeld) {
		t.Fatalf("it did not stop: %v", err)
	}
	if fence, err := h.AwaitFence(ctx, endpoint, instance, 1); err != nil || fence.State != messages.InstanceFrozen {
		t.Errorf("fenced by %+v, %v", fence, err)
	}
	if err := enter(); !world.Refused(err) {
		t.Errorf("while the gate is frozen: %v", err)
	}
	if _, err := h.RepairInstance(ctx, endpoint, instance); !errors.Is(err, messages.RegistrationAlive) {
		t.Errorf("while it lives: %v", err)
	}
	if err := conn.Close(ctx); err != nil {
		t.Error(err)
	}
	natsdtest.Eventually(t, "it is repaired", func() error { // a server may list what has just left
		repaired, err := h.RepairInstance(ctx, endpoint, instance)
		if err == nil && (repaired.Instance.Epoch != 1 || repaired.Instance.State != messages.InstanceOpen) {
			t.Errorf("repaired to %+v", repaired)
		}
		return err
	})
	if third, err := h.RegisterHostInstance(ctx, endpoint, instance, p); err != nil || third.Instance.Epoch != 2 {
		t.Errorf("the third: %+v, %v", third, err)
	}
}

// grantOn grants p, which may do nothing in particular.
func grantOn(t *testing.T, h *space.Handle, p messages.Principal) {
	t.Helper()
	capability, err := os.ReadFile(h.CapabilityFile())
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"owner":%q,"actor":%q,"scope":[],"publish":[],"subscribe":[],"serve":false}`, p.Owner, p.Actor)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL()+"/v1/grants", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+string(capability))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("grant: %d", answer.StatusCode)
	}
}
