package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// roster are the servers that the service has met.
type roster struct {
	Servers []string `json:"servers"`
}

func (a *app) rosterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "roster", GroupID: groupSee, Args: cobra.NoArgs,
		Short: "The servers that must prove that somebody is gone",
		Long: "Lists every server that was ever met. Somebody is proved gone only when each of\n" +
			"them has said so: one that stands still may still have a connection of theirs.",
		RunE: doing(func(ctx context.Context, _ []string) error {
			var known roster
			answer, err := a.fetch(ctx, "/v1/roster", &known)
			return a.tellRoster(answer, known, err)
		}),
	}
	cmd.AddCommand(a.forgetCommand())
	return cmd
}

func (a *app) forgetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "forget name", Args: cobra.ExactArgs(1),
		Short: "Take out a server that is gone for good",
		Long: "Takes a server out of those that must prove that somebody is gone. Only do so\n" +
			"when it will never run again: what is connected to it is then taken for gone.",
		Example: "  authplane roster forget n1",
		RunE: doing(func(ctx context.Context, args []string) error {
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			var left roster
			answer, err := client.Send(ctx, http.MethodDelete, "/v1/roster/"+url.PathEscape(args[0]), nil)
			if err == nil {
				err = decode(answer, &left)
			}
			return a.tellRoster(answer, left, err)
		}),
	}
}

func (a *app) tellRoster(answer json.RawMessage, known roster, err error) error {
	if err != nil || a.json {
		return a.pass(answer, err)
	}
	rows := make([][]string, len(known.Servers))
	for i, name := range known.Servers {
		rows[i] = []string{name}
	}
	return table(a.out, "server", rows)
}
