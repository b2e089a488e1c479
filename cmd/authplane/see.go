package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/messages"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", GroupID: groupSee, Args: cobra.NoArgs,
		Short: "What the space can do now, and why not more",
		RunE: doing(func(ctx context.Context, _ []string) error {
			var status messages.Status
			answer, err := a.fetch(ctx, "/v1/status", &status)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			return pairs(a.out, append([][2]string{
				{"space", status.Space},
				{"state", string(status.State)},
				{"cause", status.Cause},
				{"problems", strings.Join(status.Problems, "; ")},
				{"since", moment(status.Since)},
			}, a.planeOf(status.Plane)...)...)
		}),
	}
}

// planeOf says who holds the plane, and while it is not this process what that waits
// for, and what to do.
func (a *app) planeOf(plane messages.PlaneStatus) [][2]string {
	return [][2]string{{"plane", standing(plane)}, {"waits for", plane.WaitingFor}, {"next", a.here(plane.Next)}}
}

// standing says how the process stands to the plane, since when, and who holds it.
func standing(plane messages.PlaneStatus) string {
	text := string(plane.State)
	if !plane.Since.IsZero() {
		text += " since " + moment(plane.Since)
	}
	switch {
	case plane.Holder == "":
		return text
	case plane.HeldByUs:
		return text + ", held by this process, " + plane.Holder
	case plane.State == messages.PlaneFenced:
		return text + ", held last by " + plane.Holder
	}
	return text + ", held by " + plane.Holder
}

func (a *app) treeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tree", GroupID: groupSee, Args: cobra.NoArgs,
		Short: "The actors, their states and restarts, and who holds the plane",
		RunE: doing(func(ctx context.Context, _ []string) error {
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			answer, err := client.Get(ctx, "/v1/tree")
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			var tree struct {
				Actors []messages.Actor `json:"actors"`
			}
			if err := decode(answer, &tree); err != nil {
				return err
			}
			if err := drawTree(a.out, client.Record().Space, tree.Actors); err != nil {
				return err
			}
			var status messages.Status
			if answer, err = client.Get(ctx, "/v1/status"); err == nil {
				err = decode(answer, &status)
			}
			if err != nil || status.Plane.State == "" {
				return err
			}
			return pairs(a.out, a.planeOf(status.Plane)...)
		}),
	}
}

func (a *app) connectionsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "connections", GroupID: groupSee, Args: cobra.NoArgs,
		Short: "Every connection the service opened, ended or not",
		RunE: doing(func(ctx context.Context, _ []string) error {
			var list struct {
				Connections []messages.Connection `json:"connections"`
			}
			answer, err := a.fetch(ctx, "/v1/connections", &list)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			rows := make([][]string, len(list.Connections))
			for i, c := range list.Connections {
				rows[i] = []string{c.Label, liveness(c.Ended)}
			}
			return table(a.out, "label\tstate", rows)
		}),
	}
}

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain [id]", GroupID: groupSee, Args: cobra.MaximumNArgs(1),
		Short: "Why a connect was denied or went unanswered, and what to do",
		Long: "Explains one connect that was not admitted, or lists the latest ones.\n" +
			"The service keeps the last 1,000.",
		RunE: doing(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return a.listDenials(ctx)
			}
			var denial messages.Denial
			answer, err := a.fetch(ctx, "/v1/denials/"+url.PathEscape(args[0]), &denial)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			return pairs(a.out,
				[2]string{"id", denial.ID},
				[2]string{"at", moment(denial.At)},
				[2]string{"outcome", string(denial.Kind)},
				[2]string{"principal", denial.Principal},
				[2]string{"reason", denial.Reason},
				[2]string{"code", string(denial.Code)},
				[2]string{"remedy", a.here(denial.Remedy)},
			)
		}),
	}
}

func (a *app) listDenials(ctx context.Context) error {
	var list struct {
		Denials []messages.Denial `json:"denials"`
	}
	answer, err := a.fetch(ctx, "/v1/denials", &list)
	if err != nil || a.json {
		return a.pass(answer, err)
	}
	rows := make([][]string, len(list.Denials))
	for i, d := range list.Denials {
		rows[i] = []string{d.ID, moment(d.At), string(d.Kind), d.Reason, d.Principal}
	}
	return table(a.out, "id\tat\toutcome\treason\tprincipal", rows)
}

// pass writes the answer as it came, unless there is none.
func (a *app) pass(answer json.RawMessage, err error) error {
	if err != nil {
		return err
	}
	return passJSON(a.out, answer)
}

func liveness(ended bool) string {
	if ended {
		return "ended"
	}
	return "live"
}
