package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) takeoverCommand() *cobra.Command {
	var flags targetFlags
	var op string
	cmd := &cobra.Command{
		Use: "takeover [owner/actor]", GroupID: groupWho, Args: cobra.MaximumNArgs(1),
		Short: "End everything issued to a principal, which goes on with nothing",
		Long: "Ends whatever was issued to a principal and drops every connection of it, proved\n" +
			"on every server. The principal and its grant stay: whoever proves who they are\n" +
			"gets in again, under the next epoch. It is for credentials that were lost. Among\n" +
			"what it prints, revoked counts those below the principal's own credential.",
		Example: "  authplane takeover " + exampleOwner + "/laptop",
		RunE: doing(func(ctx context.Context, args []string) error {
			if err := flags.read(args); err != nil {
				return err
			}
			body := flags.body()
			join := func(id string) { body["op_id"] = id }
			if op != "" {
				join(op)
			}
			return a.operate(ctx, "/v1/takeover", flags, body, join)
		}),
	}
	flags.define(cmd.Flags())
	cmd.Flags().StringVar(&op, "op", "", "go on with the takeover of this `id`, instead of beginning one")
	return cmd
}
