package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) retireCommand() *cobra.Command {
	var flags targetFlags
	cmd := &cobra.Command{
		Use: "retire [owner/actor]", GroupID: groupWho, Args: cobra.MaximumNArgs(1),
		Short: "End an incarnation for good, and prove that it is gone",
		Long: "Revokes a grant and ends the incarnation it is for: every credential is revoked,\n" +
			"every connection on every server is dropped and proved gone, the work it left is\n" +
			"ended, and where its streams end is recorded. It is denied from the moment the\n" +
			"service has heard it; what comes after goes on whoever waits. Asking again joins\n" +
			"what was asked for, and exits 4 as long as that is not over.",
		Example: "  authplane retire " + exampleOwner + "/laptop\n" +
			"  authplane retire --sub alice --actor laptop --wait 0s",
		RunE: doing(func(ctx context.Context, args []string) error {
			if err := flags.read(args); err != nil {
				return err
			}
			return a.operate(ctx, "/v1/retire", flags, flags.body(), func(string) {})
		}),
	}
	flags.define(cmd.Flags())
	return cmd
}
