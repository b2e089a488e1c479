package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/settings"
	"github.com/cotal-ai/authplane/messages"
)

// devSpace is the space of a directory that was not told another name.
const devSpace = "dev"

// devOptions says what dev is to run.
type devOptions struct {
	// dir is made if it is not there; what stands in it is used again.
	dir string
	// space must be the one of the directory, if that has one. Empty takes that, or
	// devSpace.
	space  string
	faults bool
	logger *slog.Logger
}

func (a *app) devCommand() *cobra.Command {
	var options devOptions
	cmd := &cobra.Command{
		Use: "dev", GroupID: groupRun, Args: cobra.NoArgs,
		Short: "Run a whole space in one process, for development",
		Long: "Runs a NATS server, an identity provider that believes everybody, and the service,\n" +
			"all in one process and from one directory, which it makes; one that init made is\n" +
			"refused. A second run goes on with what the first one left. Never let others\n" +
			"reach it.",
		RunE: doing(func(ctx context.Context, _ []string) error {
			options.dir, options.logger = a.dir, newLogger(a.err, settings.Log{})
			start := func(ctx context.Context) (running, error) { return startDev(ctx, options) }
			return a.keep(ctx, kept{start: start, welcome: a.welcomeDev})
		}),
	}
	cmd.Flags().StringVar(&options.space, "space", "", "the `name` of the space; "+devSpace+" if left out")
	cmd.Flags().BoolVar(&options.faults, "fault-injection", false, "let actors be killed over the loopback face")
	return cmd
}

func (a *app) welcomeDev(record service.Record) error {
	if err := pairs(a.out,
		[2]string{"space", record.Space + " is ready"},
		[2]string{"broker", record.NATSURL},
		[2]string{"sentinel", record.SentinelCreds},
		[2]string{"provider", record.ProviderIssuer},
		[2]string{"loopback", record.URL},
		[2]string{"state", record.StateDir},
	); err != nil {
		return err
	}
	a.say("\ntry, in another terminal:")
	for _, command := range []string{
		"authplane grant --sub alice --actor laptop --publish 'chat.>' --subscribe 'chat.>'",
		"authplane context --sub alice --actor laptop --name alice",
		"nats --context alice sub 'chat.>'",
		"authplane tree",
	} {
		a.say("  %s", a.here(command))
	}
	a.say("\ninterrupt to close")
	return nil
}

// prepare makes the space of a directory, or reads the one that stands there.
func prepare(ctx context.Context, o devOptions) (space.Config, error) {
	path := filepath.Join(o.dir, configFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		begin := settings.Beginning{Space: o.space, NATSURL: defaultNATSURL, Replicas: 1}
		if begin.Space == "" {
			begin.Space = devSpace
		}
		if _, err := begins(ctx, o.dir, begin); err != nil {
			return space.Config{}, err
		}
	}
	found, err := settings.Load(path, settings.Overrides{})
	switch {
	case err != nil:
		return space.Config{}, err
	case len(found.Spaces) > 1:
		return space.Config{}, messages.ConfigStands.Because("%s is of several spaces, and dev runs one", path)
	case o.space != "" && o.space != found.Spaces[0].Space:
		return space.Config{}, messages.ConfigStands.Because("%s is of the space %s", path, found.Spaces[0].Space)
	}
	return found.Spaces[0], nil
}
