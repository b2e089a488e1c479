package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// controller is an instance that is run by a controller, as the service shows it.
type controller struct {
	Endpoint  string `json:"endpoint"`
	Instance  string `json:"instance"`
	Owner     string `json:"owner"`
	Actor     string `json:"actor"`
	State     string `json:"state"`
	Epoch     uint64 `json:"epoch"`
	Prepared  uint64 `json:"prepared"`
	Activated bool   `json:"activated"`
	Live      int    `json:"live"`
	ExpiresAt string `json:"expires_at"`
}

// stands says how far the process is that counts.
func (c controller) stands() string {
	switch {
	case c.Prepared != c.Epoch:
		return "has not come yet"
	case !c.Activated:
		return "prepared"
	}
	return "activated"
}

func (c controller) cells() []string {
	return []string{c.Endpoint, c.Instance, c.Owner, c.State, strconv.FormatUint(c.Epoch, 10), c.stands(), strconv.Itoa(c.Live), c.ExpiresAt}
}

func (a *app) controllersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "controllers", GroupID: groupSee, Args: cobra.NoArgs,
		Short: "The instances that are run by controllers",
		Long: "Lists the instances whose controller was ever issued something: whose it is, how\n" +
			"far the process of the present epoch has come, how many credentials of it are\n" +
			"good now, and when the first of these runs out.",
		RunE: doing(func(ctx context.Context, _ []string) error {
			var all struct {
				Controllers []controller `json:"controllers"`
				Unreadable  []string     `json:"unreadable"`
			}
			answer, err := a.fetch(ctx, "/v1/controllers", &all)
			if err != nil || a.json {
				return a.pass(answer, err)
			}
			for _, key := range all.Unreadable {
				_, _ = fmt.Fprintf(a.err, "%s cannot be read\n", key)
			}
			rows := make([][]string, len(all.Controllers))
			for i, one := range all.Controllers {
				rows[i] = one.cells()
			}
			return table(a.out, "endpoint\tinstance\towner\tgate\tepoch\tcontroller\tlive\tfirst runs out", rows)
		}),
	}
}
