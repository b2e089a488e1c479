package embed_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

// A space in an actor system that also has other things to do. The installation is
// what `authplane init` makes, with a nats-server running on it.
func Example() {
	installation, end := newInstallation()
	defer end()
	ctx := context.Background()
	system := actor.NewActorSystem()
	defer system.Shutdown()

	authority, err := space.Start(ctx, system, space.Config{
		Space:         "acme",
		NATSURL:       installation.NATSURL,
		SecretsDir:    installation.SecretsDir,
		SentinelCreds: installation.SentinelCreds,
		StateDir:      installation.StateDir,
	})
	if err != nil {
		log.Fatal(err)
	}

	answer, err := system.Root.RequestFuture(authority.PID(), messages.GetStatus{}, time.Second).Result()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.(messages.Status).State)

	if err := authority.Close(ctx); err != nil {
		log.Fatal(err)
	}
	<-authority.Closed()
	fmt.Println(authority.Status().State)
	// Output:
	// ready
	// closed
}
