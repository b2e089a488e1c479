package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// runView is a run as the service shows it.
type runView struct {
	Endpoint   string         `json:"endpoint"`
	Run        string         `json:"run"`
	Instance   string         `json:"instance"`
	Owner      string         `json:"owner"`
	Actor      string         `json:"actor"`
	Publish    []string       `json:"publish"`
	Subscribe  []string       `json:"subscribe"`
	Witness    string         `json:"witness"`
	AdmittedAt string         `json:"admitted_at"`
	Revoked    *runRevocation `json:"revoked"`
	Attempts   []runAttempt   `json:"attempts"`
}

type runRevocation struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	At     string `json:"at"`
}

type runAttempt struct {
	Attempt   uint64 `json:"attempt"`
	Epoch     uint64 `json:"epoch"`
	Takeover  string `json:"takeover"`
	Reserved  string `json:"reserved_at"`
	ExpiresAt string `json:"expires_at"`
}

func (r runView) cells() []string {
	revoked := ""
	if r.Revoked != nil {
		revoked = r.Revoked.At + " by " + r.Revoked.By
	}
	return []string{r.Endpoint, r.Run, r.Instance, r.Owner + "/" + r.Actor, r.AdmittedAt, revoked}
}

func runPath(args []string) string {
	parts := []string{"/v1/runs"}
	for _, a := range args {
		parts = append(parts, url.PathEscape(a))
	}
	return strings.Join(parts, "/")
}

func (a *app) runsCommand() *cobra.Command {
	verb := &cobra.Command{
		Use: "runs [endpoint]", GroupID: groupSee, Args: cobra.MaximumNArgs(1),
		Short: "The runs of services' jobs, and who started them",
		Long: "Lists the runs that were admitted: which instance of a service runs it, who started\n" +
			"it, and whether it was revoked. `runs show` tells the most that one may do, and who\n" +
			"drove it; `runs revoke` ends issuing for it.",
		RunE: doing(func(ctx context.Context, args []string) error { return a.listRuns(ctx, args) }),
	}
	verb.AddCommand(a.runsListCommand(), a.runsShowCommand(), a.runsRevokeCommand())
	return verb
}

func (a *app) runsListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list [endpoint]", Args: cobra.MaximumNArgs(1), Short: "The same list",
		RunE: doing(func(ctx context.Context, args []string) error { return a.listRuns(ctx, args) }),
	}
}

func (a *app) listRuns(ctx context.Context, args []string) error {
	var all struct {
		Runs       []runView `json:"runs"`
		Unreadable []string  `json:"unreadable"`
	}
	answer, err := a.fetch(ctx, runPath(args), &all)
	if err != nil || a.json {
		return a.pass(answer, err)
	}
	for _, key := range all.Unreadable {
		_, _ = fmt.Fprintf(a.err, "%s cannot be read\n", key)
	}
	rows := make([][]string, len(all.Runs))
	for i, one := range all.Runs {
		rows[i] = one.cells()
	}
	return table(a.out, "endpoint\trun\tinstance\tstarted by\tadmitted\trevoked", rows)
}

func (a *app) runsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show endpoint run", Args: cobra.ExactArgs(2),
		Short: "One run: the most that it may do, and who drove it",
		RunE: doing(func(ctx context.Context, args []string) error {
			var one runView
			answer, err := a.fetch(ctx, runPath(args), &one)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			_, _ = fmt.Fprintf(a.out, "%s of %s, instance %s\nstarted by %s/%s at %s, shown by %s\npublish    %s\nsubscribe  %s\n", one.Run, one.Endpoint, one.Instance,
				one.Owner, one.Actor, one.AdmittedAt, one.Witness, strings.Join(one.Publish, " "), strings.Join(one.Subscribe, " "))
			if r := one.Revoked; r != nil {
				_, _ = fmt.Fprintf(a.out, "revoked at %s by %s: %s\n", r.At, r.By, r.Reason)
			}
			rows := make([][]string, len(one.Attempts))
			for i, t := range one.Attempts {
				rows[i] = []string{strconv.FormatUint(t.Attempt, 10), strconv.FormatUint(t.Epoch, 10), t.Takeover, t.Reserved, t.ExpiresAt}
			}
			return table(a.out, "attempt\tepoch\ttakeover\treserved\truns out", rows)
		}),
	}
}

func (a *app) runsRevokeCommand() *cobra.Command {
	var reason string
	verb := &cobra.Command{
		Use: "revoke endpoint run", Args: cobra.ExactArgs(2),
		Short: "Issue nothing for a run any more",
		Long: "Revokes a run: no driver of it gets a credential any more, and nobody answers it.\n" +
			"What was issued before runs out by itself. A run that was revoked before stays so\n" +
			"for the first reason, which is printed.",
		RunE: doing(func(ctx context.Context, args []string) error {
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			var done runRevocation
			answer, err := client.Send(ctx, http.MethodPost, runPath(args)+"/revoke", map[string]string{"reason": reason})
			if err == nil {
				err = decode(answer, &done)
			}
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			_, err = fmt.Fprintf(a.out, "revoked %s at %s by %s: %s\n", args[1], done.At, done.By, done.Reason)
			return err
		}),
	}
	verb.Flags().StringVar(&reason, "reason", "", "why, in one line")
	return verb
}
