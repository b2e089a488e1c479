package devidp_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/devidp"
	"github.com/cotal-ai/authplane/supervisor"
)

// However the leaf dies, the same provider stands again; and a close ends it.
func TestLeafComesBack(t *testing.T) {
	server, err := devidp.New(devidp.Config{ClientID: clientID})
	if err != nil {
		t.Fatal(err)
	}
	system := actor.NewActorSystem()
	defer system.Shutdown()
	tree, err := supervisor.Start(t.Context(), system, supervisor.Spec{Name: "dev",
		Group: &supervisor.Group{Children: []supervisor.Spec{devidp.Spec("idp", server)}}})
	if err != nil {
		t.Fatal(err)
	}
	events := tree.Events(64)
	defer events.Close()
	issuer := server.Issuer()
	answer := post(t, issuer+"/dev/token", "application/json", `{"sub":"user-1"}`)
	token := answer.member(t, "id_token")
	for _, how := range []supervisor.How{supervisor.Panic, supervisor.Stop, supervisor.Disconnect} {
		killed, err := tree.Kill("idp", how)
		if err != nil {
			t.Fatal(err)
		}
		awaitOpened(t, events, killed.Generation+1)
		if server.Issuer() != issuer {
			t.Errorf("after %s it moved to %s", how, server.Issuer())
		}
		if subject, err := subjectOf(t, server, token); err != nil || subject != "user-1" {
			t.Errorf("after %s: %q, %v", how, subject, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := tree.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := browser().Get(issuer); err == nil {
		t.Error("it answers after the close")
	}
}

func awaitOpened(t *testing.T, events *supervisor.Subscription, generation uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
