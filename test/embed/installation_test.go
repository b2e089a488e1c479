package embed_test

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/cotal-ai/authplane/actors/devbroker"
	"github.com/cotal-ai/authplane/actors/space"
)

// patience bounds every wait. It is only ever reached by a failure.
const patience = 30 * time.Second

// installation is what a space is started with.
type installation struct{ NATSURL, SecretsDir, SentinelCreds, StateDir string }

func (i installation) config() space.Config {
	return space.Config{Space: "acme", NATSURL: i.NATSURL, SecretsDir: i.SecretsDir, SentinelCreds: i.SentinelCreds, StateDir: i.StateDir}
}

// newInstallation makes an installation in a directory of its own, with a broker
// that runs until end.
func newInstallation() (i installation, end func()) {
	dir, err := os.MkdirTemp("", "authplane-embed-")
	if err != nil {
		log.Fatal(err)
	}
	i, stop, err := installIn(dir)
	if err != nil {
		log.Fatal(err)
	}
	return i, func() {
		stop()
		_ = os.RemoveAll(dir)
	}
}

// installIn makes an installation in dir/installation and runs a broker on it. The
// state directory, dir/state, is left to the space to make.
func installIn(dir string) (installation, func(), error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	chain := filepath.Join(dir, "installation")
	made, err := space.Init(ctx, space.InitOptions{Dir: chain, Space: "acme", NATSURL: "nats://127.0.0.1:0"})
	if err != nil {
		return installation{}, nil, err
	}
	broker, err := devbroker.New(devbroker.Config{Dir: chain})
	if err != nil {
		return installation{}, nil, err
	}
	run, err := broker.Start(ctx)
	if err != nil {
		return installation{}, nil, err
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := run.Stop(ctx); err != nil {
			log.Fatal(err)
		}
	}
	return installation{
		NATSURL: broker.URL(), SecretsDir: made.SecretsDir, SentinelCreds: made.SentinelCreds, StateDir: filepath.Join(dir, "state"),
	}, stop, nil
}
