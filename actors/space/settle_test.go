package space

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// Every responder of a space settles when presence is asked for it.
func TestEveryResponderSettles(t *testing.T) {
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := natsdtest.NewSpace(t, "main")
	system := actor.NewActorSystem(
		actor.WithDeadLetterThrottleInterval(time.Millisecond), // the library's goroutine ends after it
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	defer system.Shutdown()
	h, err := Start(patience, system, Config{
		Space: "main", NATSURL: server.URL(), StateDir: t.TempDir(), SecretsDir: trust.SecretsDir(server.Dir), Responders: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(patience); err != nil {
			t.Error(err)
		}
	}()
	var await []messages.ConnectionRef
	for _, r := range h.tree.Load().Custody().Resources() {
		if conn, ok := r.(*broker.Conn); ok && conn.Label() == "cotal:auth-service:main" {
			tuple, _ := conn.Tuple()
			await = append(await, messages.ConnectionRef{ServerID: tuple.ServerID, ClientID: tuple.ClientID})
		}
	}
	if len(await) != 3 {
		t.Fatalf("there are %d responders", len(await))
	}
	presence, _ := h.tree.Load().Ref(presencePath)
	settled, err := client.Ask[messages.Settled](patience, presence, messages.SettleResponders{Operation: "op1", Await: await})
	if err != nil {
		t.Fatal(err)
	}
	named := map[messages.ConnectionRef]bool{}
	for _, c := range settled.Connections {
		named[c] = true
	}
	for _, c := range await {
		if !named[c] {
			t.Errorf("%v has not settled: %v", c, settled.Connections)
		}
	}
}
