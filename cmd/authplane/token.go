package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) tokenCommand() *cobra.Command {
	var flags proofFlags
	cmd := &cobra.Command{
		Use: "token [owner/actor]", GroupID: groupWho, Args: cobra.MaximumNArgs(1),
		Short: "Exchange a proof of identity for a token, and print it",
		Long: "Exchanges a proof of identity for the short-lived token that a client presents\n" +
			"to the broker as its auth token, and prints the token; with --json also what\n" +
			"else it connects with: the sentinel creds, and its inbox prefix. A token lives for\n" +
			"15 minutes, a machine's for 5; a client exchanges again before it connects again.",
		Example: "  authplane token --sub alice --actor laptop\n" +
			"  authplane token --id-token-file - --actor laptop < id_token\n" +
			"  authplane token " + exampleOwner + "/robot --actor-token-file robot.secret",
		RunE: doing(func(ctx context.Context, args []string) error {
			if err := flags.name(args); err != nil {
				return err
			}
			if err := flags.check(); err != nil {
				return err
			}
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			b, err := a.exchange(ctx, client, flags)
			if err != nil {
				return flags.named(err)
			}
			if a.json {
				return writeJSON(a.out, b)
			}
			a.say("%s/%s until %s", b.Owner, flags.actor, moment(b.ExpiresAt))
			_, err = fmt.Fprintln(a.out, b.Token)
			return err
		}),
	}
	flags.define(cmd.Flags())
	return cmd
}

// say talks to whoever sits there.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, format+"\n", args...)
}
