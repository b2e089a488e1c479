package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// How much longer than any other answer these may take.
const (
	// registerWait is for connections to end.
	registerWait = 75 * time.Second
	// issueWait is for whoever issues to come back.
	issueWait = 15 * time.Second
)

func (a *app) registerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "register endpoint instance owner/actor", GroupID: groupWho, Args: cobra.ExactArgs(3),
		Short: "Make a new process the one of a service's instance",
		Long: "Registers a process that is about to serve an instance of a service, as whose\n" +
			"connections it does, and prints its epoch. The process before is fenced by then:\n" +
			"what it was issued is revoked, and its connections are proved gone. While that is\n" +
			"not done it exits 4, and the same line goes on from there. The instance is named\n" +
			"by 26 to 32 characters of [a-z0-9], the same at each start.",
		Example: "  authplane register svc_a 2ihcbv5w3tzqk7ylm4f6ojdx9a " + exampleOwner + "/svc",
		RunE: doing(func(ctx context.Context, args []string) error {
			p, err := parsePrincipal(args[2])
			if err != nil {
				return err
			}
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			body := map[string]string{"endpoint": args[0], "instance": args[1], "owner": p.Owner, "actor": p.Actor}
			var made instance
			answer, err := client.SendPatiently(ctx, http.MethodPost, "/v1/instances", body, registerWait)
			if err == nil {
				err = decode(answer, &made)
			}
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			_, err = fmt.Fprintf(a.out, "registered %s of %s at epoch %d; %d credentials revoked\n", made.Instance, made.Endpoint, made.Epoch, made.Revoked)
			return err
		}),
	}
}

// credentialFlags is what `credential` was told.
type credentialFlags struct {
	epoch uint64
	ttl   time.Duration
	out   string
	// given reports whether a flag stands on the command line.
	given func(name string) bool
}

func (f *credentialFlags) define(set *pflag.FlagSet) {
	f.given = set.Changed
	set.Uint64Var(&f.epoch, "epoch", 0, "the process `N` that it is for, as it was registered")
	set.DurationVar(&f.ttl, "ttl", 0, "how long the token is to live, at most 15m; the longest that is allowed if left out")
	set.StringVar(&f.out, "out", "", "write the token, alone, to this `file`, which only you can read")
}

func (f *credentialFlags) check() error {
	switch {
	case !f.given("epoch"):
		return usage("--epoch is missing: the one that `authplane register` printed")
	case f.ttl < 0 || f.ttl%time.Second != 0:
		return usage("--ttl is a number of whole seconds, such as 90s or 15m")
	}
	return nil
}

func (f *credentialFlags) body() map[string]any {
	body := map[string]any{"epoch": f.epoch}
	if f.ttl > 0 {
		body["ttl_seconds"] = int64(f.ttl / time.Second)
	}
	return body
}

// processCredential is a token of one process of an instance, and with what else its
// holder connects.
type processCredential struct {
	Token        string    `json:"token,omitempty"`
	CredentialID string    `json:"credential_id"`
	Owner        string    `json:"owner"`
	Actor        string    `json:"actor"`
	ExpiresAt    time.Time `json:"expires_at"`

	NATSURL       string `json:"nats_url"`
	SentinelCreds string `json:"sentinel_creds"`
	InboxPrefix   string `json:"inbox_prefix"`
	// File is where the token went instead.
	File string `json:"file,omitempty"`
}

func (a *app) credentialCommand() *cobra.Command {
	var flags credentialFlags
	cmd := &cobra.Command{
		Use: "credential endpoint instance", GroupID: groupWho, Args: cobra.ExactArgs(2),
		Short: "Get the token of one process of a service's instance, and print it",
		Long: "Gets the short-lived token with which the process that was registered with --epoch\n" +
			"connects, and prints it; with --json also what else it connects with. It lets in\n" +
			"until the next process registers, or it runs out; get another one before. Besides\n" +
			"what the grant says it hears what NATS micro services are asked at $SRV, as the one\n" +
			"that has the endpoint for its name.",
		Example: "  authplane credential svc_a 2ihcbv5w3tzqk7ylm4f6ojdx9a --epoch 0 --out svc.token",
		RunE: doing(func(ctx context.Context, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			return a.issue(ctx, client, args[0], args[1], flags)
		}),
	}
	flags.define(cmd.Flags())
	return cmd
}

// issue gets a token and shows it. The file for it is made ready before, so that none is
// made which nobody gets to see.
func (a *app) issue(ctx context.Context, client *service.Client, endpoint, name string, flags credentialFlags) error {
	var private *service.Private
	if flags.out != "" {
		var err error
		if private, err = service.CreatePrivate(flags.out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		defer private.Discard() // does nothing once it was placed
	}
	answer, err := client.SendPatiently(ctx, http.MethodPost, "/v1/instances/"+url.PathEscape(endpoint)+"/"+url.PathEscape(name)+"/credential", flags.body(), issueWait)
	if err != nil {
		return err
	}
	var c processCredential
	if err := decode(answer, &c); err != nil {
		return err
	}
	record := client.Record()
	c.NATSURL, c.SentinelCreds, c.InboxPrefix = record.NATSURL, record.SentinelCreds, messages.Principal{Owner: c.Owner, Actor: c.Actor}.InboxPrefix()
	if private != nil {
		if err := private.Place([]byte(c.Token)); err != nil {
			return failure{fmt.Errorf("--out: %w", err)}
		}
		c.Token, c.File = "", flags.out
	}
	return a.tellCredential(c)
}

func (a *app) tellCredential(c processCredential) error {
	if a.json {
		return writeJSON(a.out, c)
	}
	a.say("%s/%s until %s", c.Owner, c.Actor, moment(c.ExpiresAt))
	shown := c.Token
	if c.File != "" {
		shown = c.File
	}
	_, err := fmt.Fprintln(a.out, shown)
	return err
}
