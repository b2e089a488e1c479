package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/settings"
	"github.com/cotal-ai/authplane/messages"
)

// defaultNATSURL is where a server of a new space listens.
const defaultNATSURL = "nats://127.0.0.1:4222"

func (a *app) initCommand() *cobra.Command {
	var begin settings.Beginning
	cmd := &cobra.Command{
		Use: "init --dir directory --space name", GroupID: groupRun, Args: cobra.NoArgs,
		Short: "Write the keys and configurations of a new space",
		Long: "Makes everything a space needs: the keys and JWTs of its accounts, a configuration\n" +
			"for the NATS server and one for this service. Nothing that stands is changed.",
		Example: "  authplane init --dir acme --space acme --nats-url nats://127.0.0.1:4222 --idp https://id.example.com",
	}
	cmd.RunE = doing(func(ctx context.Context, _ []string) error {
		if !cmd.Flags().Changed("dir") || begin.Space == "" {
			return usage("name both: --dir, which is made, and --space")
		}
		made, err := begins(ctx, a.dir, begin)
		if err != nil {
			return err
		}
		return a.tellInit(begin.Space, made)
	})
	cmd.Flags().StringVar(&begin.Space, "space", "", "the `name` of the space, 1 to 32 of [a-z0-9_-]")
	cmd.Flags().StringVar(&begin.NATSURL, "nats-url", defaultNATSURL, "where the NATS server is to listen, a `URL` with host and port")
	cmd.Flags().StringVar(&begin.Issuer, "idp", "", "the issuer `URL` of the identity provider; machines only if left out")
	cmd.Flags().IntVar(&begin.Replicas, "replicas", 1, "how many servers keep the authority's records: 1, 3 or 5")
	return cmd
}

// installation is what init made.
type installation struct {
	space.Initialised
	configFile string
}

// begins makes a space in a directory that has none.
func begins(ctx context.Context, dir string, begin settings.Beginning) (installation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return installation{}, err
	}
	config := filepath.Join(dir, configFile)
	if _, err := os.Lstat(config); !errors.Is(err, fs.ErrNotExist) {
		return installation{}, errors.Join(messages.ConfigStands.Because("%s", config), err)
	}
	planned := space.InstallationIn(dir)
	begin.SecretsDir = settings.Beside(dir, planned.SecretsDir)
	begin.SentinelCreds = settings.Beside(dir, planned.SentinelCreds)
	if err := begin.Check(dir); err != nil {
		return installation{}, err
	}
	made, err := space.Init(ctx, space.InitOptions{Dir: dir, Space: begin.Space, NATSURL: begin.NATSURL})
	if err != nil {
		return installation{}, err
	}
	return installation{made, config}, begin.Create(config)
}

func (a *app) tellInit(name string, made installation) error {
	if a.json {
		return writeJSON(a.out, struct {
			Space         string `json:"space"`
			ConfigFile    string `json:"config_file"`
			ServerConfig  string `json:"server_config"`
			SentinelCreds string `json:"sentinel_creds"`
			SecretsDir    string `json:"secrets_dir"`
			OfflineDir    string `json:"offline_dir"`
		}{name, made.configFile, made.ServerConfig, made.SentinelCreds, made.SecretsDir, made.OfflineDir})
	}
	a.say("space %s is made. Carry %s away and keep it offline: it opens everything.", name, made.OfflineDir)
	a.say("next, each in a terminal of its own:")
	a.say("  nats-server -c %s", shellWord(made.ServerConfig))
	a.say("  authplane serve --config %s", shellWord(made.configFile))
	a.say("  authplane --dir %s status", shellWord(filepath.Dir(made.configFile)))
	return pairs(a.out,
		[2]string{"config", made.configFile},
		[2]string{"server", made.ServerConfig},
		[2]string{"sentinel", made.SentinelCreds},
		[2]string{"secrets", made.SecretsDir},
		[2]string{"offline", made.OfflineDir},
	)
}
