package main

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
)

// build is what the binary knows of its making.
type build struct {
	Version string `json:"version"`
	// Revision is the commit it was built from; empty when it is not known.
	Revision string `json:"revision"`
	// Time is when that commit was made, RFC 3339.
	Time string `json:"time"`
	// Modified says that the sources differed from the commit.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	// NATSServer is the version of the server that dev and demo embed.
	NATSServer string `json:"nats_server"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", GroupID: groupSee, Args: cobra.NoArgs,
		Short: "What this binary was built from",
		RunE: doing(func(context.Context, []string) error {
			b := readBuild()
			if a.json {
				return writeJSON(a.out, b)
			}
			revision := b.Revision
			if b.Modified {
				revision += " (modified)"
			}
			return pairs(a.out,
				[2]string{"authplane", b.Version},
				[2]string{"revision", revision},
				[2]string{"time", b.Time},
				[2]string{"go", b.Go},
				[2]string{"nats-server", b.NATSServer},
			)
		}),
	}
}

func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{Version: "unknown"}
	}
	b := build{Version: info.Main.Version, Go: info.GoVersion}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.time":
			b.Time = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	server := func(m *debug.Module) bool { return m.Path == "github.com/nats-io/nats-server/v2" }
	if i := slices.IndexFunc(info.Deps, server); i >= 0 {
		b.NATSServer = info.Deps[i].Version
	}
	return b
}
