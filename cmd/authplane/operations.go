package main

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"
)

func (a *app) operationsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "operations [id]", GroupID: groupSee, Args: cobra.MaximumNArgs(1),
		Short: "Takeovers and retirements that are not over, and what they wait for",
		Long: "Lists the takeovers and retirements that are owed, or shows one by its id, with\n" +
			"what it proved once it is over.",
		RunE: doing(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return a.listOperations(ctx)
			}
			var o operation
			answer, err := a.fetch(ctx, "/v1/operations/"+url.PathEscape(args[0]), &o)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			return a.tellOperation(o)
		}),
	}
}

func (a *app) listOperations(ctx context.Context) error {
	var list struct {
		Operations []operation `json:"operations"`
	}
	answer, err := a.fetch(ctx, "/v1/operations", &list)
	if err != nil || a.json {
		return a.pass(answer, err)
	}
	rows := make([][]string, len(list.Operations))
	for i, o := range list.Operations {
		rows[i] = []string{o.OpID, string(o.Kind), slashed(o.principal()), o.progress(), firstLine(o.WaitingFor), a.here(o.Next)}
	}
	return table(a.out, "operation\tkind\tprincipal\tprogress\twaits for\tnext", rows)
}
