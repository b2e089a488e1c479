package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

func (a *app) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke owner/actor", GroupID: groupWho, Args: cobra.ExactArgs(1),
		Short: "End a grant, and those of the machines below it",
		Long: "Ends a grant and the grants of all machines below it. From then on there is no\n" +
			"new token and no new connect. A connection that stands is cut by the retirement\n" +
			"that it asks for, whose operation it prints; `authplane retire` waits for that.\n" +
			"Where the servers are somebody else's (eviction: expiry) nobody can cut it: it ends\n" +
			"with its permission, and by when is printed.",
		Example: "  authplane revoke " + exampleOwner + "/laptop",
		RunE: doing(func(ctx context.Context, args []string) error {
			principal, err := parsePrincipal(args[0])
			if err != nil {
				return err
			}
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			return a.revoke(ctx, client, principal)
		}),
	}
}

// revoke ends a grant and says which others ended with it: those below it that
// were live before and are no more.
func (a *app) revoke(ctx context.Context, client *service.Client, principal messages.Principal) error {
	before, unseen := grantsBelow(ctx, client, principal)
	w, err := a.change(ctx, client, http.MethodDelete, grantPath(principal), nil)
	if err != nil {
		return err
	}
	var after []grantView
	if unseen == nil && len(before) > 0 {
		after, unseen = grantsBelow(ctx, client, principal)
	}
	if unseen != nil { // the end of the grant matters more than the list
		a.say("which machines ended with it is not known: %v", unseen)
	}
	w.Ended = endedBetween(before, after)
	return a.tellWritten(w)
}

// grantsBelow lists the grants whose chain of parents leads to a principal.
func grantsBelow(ctx context.Context, client *service.Client, top messages.Principal) ([]grantView, error) {
	answer, err := client.Get(ctx, "/v1/grants")
	if err != nil {
		return nil, err
	}
	var list struct {
		Grants []grantView `json:"grants"`
	}
	if err := decode(answer, &list); err != nil {
		return nil, err
	}
	children := map[string][]grantView{}
	for _, g := range list.Grants {
		children[g.Parent] = append(children[g.Parent], g)
	}
	var below []grantView
	seen := map[string]bool{top.String(): true}
	for above := []string{top.String()}; len(above) > 0; above = above[1:] {
		for _, g := range children[above[0]] {
			if name := g.principal().String(); !seen[name] {
				seen[name] = true
				below, above = append(below, g), append(above, name)
			}
		}
	}
	return below, nil
}

func endedBetween(before, after []grantView) []string {
	live := map[string]bool{}
	for _, g := range before {
		live[g.UID] = g.State == messages.GrantLive
	}
	var ended []string
	for _, g := range after {
		if live[g.UID] && g.State == messages.GrantRevoked {
			ended = append(ended, slashed(g.principal()))
		}
	}
	return ended
}
