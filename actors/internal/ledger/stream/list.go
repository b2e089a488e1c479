package stream

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// page is one answer of STREAM.INFO that also names subjects.
type page struct {
	envelope
	Total int `json:"total"`
	State struct {
		Last     uint64            `json:"last_seq"`
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

// list names the keys that match filter, page after page, from the leader. Keys are
// never removed, so one that appears in between may push others onto two pages and
// never past one. Whoever has not reached the revision does not lead.
func (c client) list(ctx context.Context, filter string, reached uint64) ([]string, error) {
	var keys []string
	for offset := 0; ; {
		ask := struct {
			Filter string `json:"subjects_filter"`
			Offset int    `json:"offset,omitempty"`
		}{c.cfg.Subject(filter), offset}
		var answer page
		if err := c.ask(ctx, "STREAM.INFO", ask, &answer); err != nil {
			return nil, fmt.Errorf("list %s: %w", filter, err)
		}
		if answer.State.Last < reached {
			return nil, fmt.Errorf("list %s: %w", filter, messages.BrokerAway.Because("another answered than who leads"))
		}
		for subject := range answer.State.Subjects {
			keys = append(keys, strings.TrimPrefix(subject, c.cfg.prefix()))
		}
		offset += len(answer.State.Subjects)
		if len(answer.State.Subjects) == 0 || offset >= answer.Total {
			slices.Sort(keys)
			return slices.Compact(keys), nil
		}
	}
}
