package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/messages"
)

// grantView is a grant as the service shows it.
type grantView struct {
	Owner     string              `json:"owner"`
	Actor     string              `json:"actor"`
	Kind      messages.GrantKind  `json:"kind"`
	UID       string              `json:"uid"`
	Revision  uint64              `json:"revision"`
	Scope     []string            `json:"scope"`
	Publish   []string            `json:"publish"`
	Subscribe []string            `json:"subscribe"`
	Serve     bool                `json:"serve"`
	Role      string              `json:"role"`
	Parent    string              `json:"parent"`
	Label     string              `json:"label"`
	State     messages.GrantState `json:"state"`
	By        string              `json:"by"`
	At        time.Time           `json:"at"`
}

func (g grantView) principal() messages.Principal {
	return messages.Principal{Owner: g.Owner, Actor: g.Actor}
}

func (a *app) grantsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "grants", GroupID: groupWho, Args: cobra.NoArgs,
		Short: "List every grant",
		RunE: doing(func(ctx context.Context, _ []string) error {
			var list struct {
				Grants     []grantView `json:"grants"`
				Unreadable []string    `json:"unreadable"`
			}
			answer, err := a.fetch(ctx, "/v1/grants", &list)
			for _, key := range list.Unreadable {
				a.say("authplane: not listed, since its row cannot be read: %q", key)
			}
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			rows := make([][]string, len(list.Grants))
			for i, g := range list.Grants {
				rows[i] = []string{slashed(g.principal()), string(g.Kind), string(g.State), number(g.Revision),
					strings.Join(g.Publish, " "), strings.Join(g.Subscribe, " "), g.Label}
			}
			return table(a.out, "principal\tkind\tstate\trevision\tpublish\tsubscribe\tlabel", rows)
		}),
	}
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show owner/actor", GroupID: groupWho, Args: cobra.ExactArgs(1),
		Short: "Show one grant",
		RunE: doing(func(ctx context.Context, args []string) error {
			principal, err := parsePrincipal(args[0])
			if err != nil {
				return err
			}
			var g grantView
			answer, err := a.fetch(ctx, grantPath(principal), &g)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			return pairs(a.out,
				[2]string{"principal", slashed(g.principal())},
				[2]string{"kind", string(g.Kind)},
				[2]string{"state", string(g.State)},
				[2]string{"uid", g.UID},
				[2]string{"revision", number(g.Revision)},
				[2]string{"scope", listed(g.Scope)},
				[2]string{"publish", listed(g.Publish)},
				[2]string{"subscribe", listed(g.Subscribe)},
				[2]string{"serve", strconv.FormatBool(g.Serve)},
				[2]string{"role", g.Role},
				[2]string{"parent", g.Parent},
				[2]string{"label", g.Label},
				[2]string{"by", g.By},
				[2]string{"at", moment(g.At)},
			)
		}),
	}
}

// listed says nothing where nothing is allowed.
func listed(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, " ")
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
