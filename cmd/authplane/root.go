package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/messages"
)

// app is what every verb works with: where it reads and writes, and where the
// service is that it talks to.
type app struct {
	in  io.Reader
	out io.Writer // data
	err io.Writer // talk
	// getenv reads the environment.
	getenv func(string) string

	// dir is the directory of init or dev, from --dir.
	dir string
	// json asks for JSON on out, from --json.
	json bool

	// announcing is held while one of several spaces says that it is ready.
	announcing sync.Mutex
}

// run executes one command line and returns the exit code.
func (a *app) run(args []string) int {
	root := a.root()
	root.SetArgs(args)
	verb, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return messages.ExitDone
	}
	a.json = a.json || slices.Contains(args, "--json") // a line that cannot be read may not have come that far
	a.complain(err, verb.CommandPath())
	return exitCode(err)
}

// root is the whole command line on one screen.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "authplane",
		Short:         "The authority of a NATS account",
		Version:       readBuild().Version,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetVersionTemplate("authplane {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpCommand(root))
	root.PersistentFlags().StringVar(&a.dir, "dir", defaultDir, "the `directory` that init or dev makes or has made, or a state directory")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write JSON, errors also")

	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run a service:"},
		&cobra.Group{ID: groupWho, Title: "Say who may do what:"},
		&cobra.Group{ID: groupSee, Title: "See what it does:"},
	)
	root.AddCommand(
		a.devCommand(),
		a.demoCommand(),
		a.initCommand(),
		a.serveCommand(),

		a.grantCommand(),
		a.enrollCommand(),
		a.revokeCommand(),
		a.retireCommand(),
		a.takeoverCommand(),
		a.registerCommand(),
		a.credentialCommand(),
		a.repairCommand(),
		a.grantsCommand(),
		a.showCommand(),
		a.tokenCommand(),
		a.contextCommand(),

		a.statusCommand(),
		a.treeCommand(),
		a.connectionsCommand(),
		a.operationsCommand(),
		a.rosterCommand(),
		a.instancesCommand(),
		a.controllersCommand(),
		a.runsCommand(),
		a.explainCommand(),
		a.versionCommand(),
	)
	return root
}

// helpCommand explains a verb; one that is not there is a usage error.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [verb]",
		Short: "Explain a verb",
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("there is no verb %q", strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}

const (
	defaultDir = ".authplane"

	groupRun = "run"
	groupWho = "who"
	groupSee = "see"
)

// doing makes the body of a verb one whose errors are its own; every other error
// of the command line is a usage error.
func doing(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := body(cmd.Context(), args); err != nil {
			return &verbError{err}
		}
		return nil
	}
}
