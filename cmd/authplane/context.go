package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
)

// natsContext is a context of the nats command line tool.
type natsContext struct {
	Description string `json:"description"`
	URL         string `json:"url"`
	Token       string `json:"token"`
	Creds       string `json:"creds"`
	InboxPrefix string `json:"inbox_prefix"`
}

func (a *app) contextCommand() *cobra.Command {
	var (
		flags     proofFlags
		name, out string
	)
	cmd := &cobra.Command{
		Use: "context [owner/actor]", GroupID: groupWho, Args: cobra.MaximumNArgs(1),
		Short: "Write a context with which the nats tool connects as a principal",
		Long: "Logs in as `authplane token` does and writes a context for the nats tool, where\n" +
			"that looks for it. The context holds the token, so it lasts as long as that\n" +
			"does; run the command again for a new one.",
		Example: "  authplane context --sub alice --actor laptop --name alice\n" +
			"  nats --context alice sub 'chat.>'",
		RunE: doing(func(ctx context.Context, args []string) error {
			if err := flags.name(args); err != nil {
				return err
			}
			if err := flags.check(); err != nil {
				return err
			}
			if name != "" && (out != "" || filepath.Base(name) != name || strings.Contains(name, "..")) {
				return usage("--name is a plain name, and does not go with --out")
			}
			return a.writeContext(ctx, flags, name, out)
		}),
	}
	flags.define(cmd.Flags())
	cmd.Flags().StringVar(&name, "name", "", "the `name` of the context; authplane-<space>-<actor> if left out")
	cmd.Flags().StringVar(&out, "out", "", "write to this `file` instead")
	return cmd
}

func (a *app) writeContext(ctx context.Context, flags proofFlags, name, out string) error {
	client, err := a.reach()
	if err != nil {
		return err
	}
	defer client.Close()
	record := client.Record()
	if name == "" {
		name = "authplane-" + record.Space + "-" + flags.actor
	}
	if out == "" {
		if out, err = a.contextFile(name); err != nil {
			return err
		}
	}
	b, err := a.exchange(ctx, client, flags)
	if err != nil {
		return flags.named(err)
	}
	if err := saveContext(out, contextFor(record, b, flags.actor)); err != nil {
		return err
	}
	return a.tellContext(name, out, b)
}

func contextFor(record service.Record, b bearer, actor string) natsContext {
	return natsContext{
		Description: b.Owner + "/" + actor + " in " + record.Space,
		URL:         b.NATSURL,
		Token:       b.Token,
		Creds:       b.SentinelCreds,
		InboxPrefix: b.InboxPrefix,
	}
}

func saveContext(path string, c natsContext) error {
	body, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the context: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write the context: %w", err)
	}
	if err := service.WritePrivate(path, append(body, '\n')); err != nil {
		return fmt.Errorf("write the context: %w", err)
	}
	return nil
}

func (a *app) tellContext(name, path string, b bearer) error {
	if a.json {
		return writeJSON(a.out, struct {
			Name      string    `json:"name"`
			File      string    `json:"file"`
			Owner     string    `json:"owner"`
			ExpiresAt time.Time `json:"expires_at"`
		}{name, path, b.Owner, b.ExpiresAt})
	}
	a.say("it lasts until %s; use it with: nats --context %s …", moment(b.ExpiresAt), name)
	_, err := fmt.Fprintln(a.out, path)
	return err
}

// contextFile is where the nats tool looks for a context of that name.
func (a *app) contextFile(name string) (string, error) {
	root := a.getenv("XDG_CONFIG_HOME")
	if root == "" {
		me, err := user.Current()
		if err != nil || me.HomeDir == "" {
			return "", usage("there is no home directory to write to; use --out")
		}
		root = filepath.Join(me.HomeDir, ".config")
	}
	return filepath.Join(root, "nats", "context", name+".json"), nil
}
