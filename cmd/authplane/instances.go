package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cotal-ai/authplane/messages"
)

// instance is the gate of a service's instance as the service shows it.
type instance struct {
	Endpoint string                 `json:"endpoint"`
	Instance string                 `json:"instance"`
	State    messages.InstanceState `json:"state"`
	Epoch    uint64                 `json:"epoch"`
	Owner    string                 `json:"owner"`
	Actor    string                 `json:"actor"`
	HeldBy   string                 `json:"held_by"`
	Revoked  int                    `json:"revoked"`
}

func (i instance) cells() []string {
	held := ""
	if i.HeldBy != "" {
		held = "registration " + i.HeldBy
	}
	return []string{i.Endpoint, i.Instance, string(i.State), strconv.FormatUint(i.Epoch, 10), i.Owner + "/" + i.Actor, held}
}

func (a *app) instancesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "instances [endpoint]", GroupID: groupSee, Args: cobra.MaximumNArgs(1),
		Short: "The instances of services, and which process of each counts",
		Long: "Lists the gates of services' instances: whether it is open, the epoch of the\n" +
			"process that is registered, whose it is, and which registration holds a frozen one.",
		RunE: doing(func(ctx context.Context, args []string) error {
			path := "/v1/instances"
			if len(args) > 0 {
				path += "/" + url.PathEscape(args[0])
			}
			var all struct {
				Instances  []instance `json:"instances"`
				Unreadable []string   `json:"unreadable"`
			}
			answer, err := a.fetch(ctx, path, &all)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			for _, key := range all.Unreadable {
				_, _ = fmt.Fprintf(a.err, "%s cannot be read\n", key)
			}
			rows := make([][]string, len(all.Instances))
			for i, one := range all.Instances {
				rows[i] = one.cells()
			}
			return table(a.out, "endpoint\tinstance\tstate\tepoch\tprincipal\theld by", rows)
		}),
	}
}

func (a *app) repairCommand() *cobra.Command {
	return &cobra.Command{
		Use: "repair endpoint instance", GroupID: groupWho, Args: cobra.ExactArgs(2),
		Short: "Open a gate that a registration which died left frozen",
		Long: "Opens the gate of an instance whose registration died half-way, for the process\n" +
			"that was registered before: once it is proved that the registration is over,\n" +
			"whatever was issued is revoked, and nobody is connected as one of the holders.\n" +
			"It exits with 0 only when that was done. Where the instance is started again no\n" +
			"repair is needed: its registration goes on from there.",
		Example: "  authplane repair svc_a 2ihcbv5w3tzqk7ylm4f6ojdx9a",
		RunE: doing(func(ctx context.Context, args []string) error {
			client, err := a.reach()
			if err != nil {
				return err
			}
			defer client.Close()
			var opened instance
			answer, err := client.Send(ctx, http.MethodPost, "/v1/repair", map[string]string{"endpoint": args[0], "instance": args[1]})
			if err == nil {
				err = decode(answer, &opened)
			}
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			_, err = fmt.Fprintf(a.out, "opened %s of %s at epoch %d; %d credentials revoked\n", opened.Instance, opened.Endpoint, opened.Epoch, opened.Revoked)
			return err
		}),
	}
}
