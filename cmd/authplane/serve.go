package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/settings"
	"github.com/cotal-ai/authplane/messages"
)

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve", GroupID: groupRun, Args: cobra.NoArgs,
		Short: "Serve a space beside a NATS server that runs",
		Long: "Serves a space until it is told to end. It waits for a broker that is away, and\n" +
			"goes on without an identity provider that is. SIGTERM closes it in order, a\n" +
			"second one hurries; past the deadline it exits 1 and says what is left.\n\n" +
			"With a list of `spaces:` in the file it serves them all, each for itself: one that\n" +
			"waits, fails or closes leaves the others be. One that fails is closed and logged;\n" +
			"the process ends with the last of them, and exits 1 if any has failed. Other verbs\n" +
			"reach one of them by --dir: its state directory, or that of init with it inside.",
		Example: "  authplane serve --config acme/authplane.yaml",
		RunE: doing(func(ctx context.Context, _ []string) error {
			if o.config == "" {
				o.config = filepath.Join(a.dir, configFile)
			}
			list, err := a.toServe(o)
			if err != nil {
				return err
			}
			return a.keep(ctx, list...)
		}),
	}
	cmd.Flags().StringVar(&o.config, "config", "", "the `file` that init wrote; "+configFile+" in --dir if left out")
	cmd.Flags().StringVar(&o.state, "state-dir", "", "the state `directory` of this process, instead of the file's; with several spaces each has one of its name below it")
	cmd.Flags().BoolVar(&o.standby, "standby", true, "wait beside a process that runs the plane, and take over when it is gone")
	cmd.Flags().BoolVar(&o.noStandby, "no-standby", false, "end at once when another process runs the plane")
	cmd.Flags().StringSliceVar(&o.lost, "server-lost", nil, "`names` of NATS servers that are gone for good, and whoever was connected to them")
	cmd.Flags().BoolVar(&o.faults, "fault-injection", false, "let actors be killed over the loopback face")
	cmd.MarkFlagsMutuallyExclusive("standby", "no-standby")
	return cmd
}

// serveOptions is what `serve` was told.
type serveOptions struct {
	config, state      string
	standby, noStandby bool
	lost               []string
	faults             bool
}

// toServe reads what spaces there are to serve. One that is alone goes without a name.
func (a *app) toServe(o serveOptions) ([]kept, error) {
	state, err := absolute(o.state)
	if err != nil {
		return nil, err
	}
	found, err := settings.Load(o.config, settings.Overrides{
		StateDir: state, CredentialsDir: a.getenv("CREDENTIALS_DIRECTORY"),
	})
	if err != nil {
		return nil, err
	}
	log := newLogger(a.err, found.Log)
	list := make([]kept, len(found.Spaces))
	for i, config := range found.Spaces {
		config.FaultInjection = o.faults
		config.NoStandby, config.ServersLost = o.noStandby || !o.standby, o.lost
		config.Logger = log
		list[i] = kept{start: starts(config), welcome: a.welcomeServe, log: log}
		if len(list) > 1 {
			list[i].name = config.Space
		}
	}
	return list, nil
}

// starts opens a space when it is called.
func starts(config space.Config) starter {
	return func(ctx context.Context) (running, error) {
		config.Logger.Info("starting", "space", config.Space, "nats_url", config.NATSURL)
		served, err := startSpace(ctx, config)
		if err != nil {
			return nil, besideAnother(config, err)
		}
		return served, nil
	}
}

// besideAnother says what leads on where another process is in the way.
func besideAnother(config space.Config, err error) error {
	switch {
	case errors.Is(err, messages.StateDirTaken):
		return advised{err, "authplane --dir " + shellWord(config.StateDir) + " status"}
	case config.NoStandby && (errors.Is(err, messages.ClaimLivePeer) || errors.Is(err, messages.ClaimConcurrent)):
		return advised{err, "leave out --no-standby: then it waits, and takes over when the holder is gone"}
	}
	return err
}

func (a *app) welcomeServe(record service.Record) error {
	return pairs(a.out,
		[2]string{"space", record.Space + " is served"},
		[2]string{"broker", record.NATSURL},
		[2]string{"loopback", record.URL},
		[2]string{"public", record.PublicURL},
		[2]string{"state", record.StateDir},
	)
}

// served is one space in an actor system of its own.
type served struct {
	*space.Handle
	system *actor.ActorSystem
}

// startSpace opens a space in an actor system of its own.
func startSpace(ctx context.Context, config space.Config) (*served, error) {
	system := newSystem()
	handle, err := space.Start(ctx, system, config)
	if err != nil {
		system.Shutdown()
		return nil, err
	}
	return &served{Handle: handle, system: system}, nil
}

// Record is what is told about the space.
func (s *served) Record() service.Record { return s.Service() }

// Close closes the space and then, if nothing is left of it, its actor system.
func (s *served) Close(ctx context.Context) error {
	err := s.Handle.Close(ctx)
	select {
	case <-s.Closed():
		s.system.Shutdown()
	default:
	}
	return err
}

// newSystem makes an actor system that logs nothing: the library prints the
// contents of messages, and what matters is in the supervisor's own events.
func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}
