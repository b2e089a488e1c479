package footprint

import (
	"context"
	"slices"

	"github.com/cotal-ai/authplane/messages"
)

// part is one thing of a footprint.
type part struct {
	name string
	// owned points into the entry.
	owned  *messages.Ownership
	look   func(context.Context) (Presence, error)
	make   func(context.Context) error
	remove func(ctx context.Context, made bool) error
}

// partsOf are the parts of an entry in the order in which they are made. Without a site
// only whose they are can be asked.
func partsOf(e *Entry, site Site) []part {
	parts := make([]part, 0, len(e.Consumers)+len(e.Rows))
	for i, c := range e.Footprint.Consumers {
		parts = append(parts, part{
			name: "consumer " + c.Name + " of " + c.Stream, owned: &e.Consumers[i],
			look:   func(ctx context.Context) (Presence, error) { return site.Consumer(ctx, c) },
			make:   func(ctx context.Context) error { return site.MakeConsumer(ctx, c) },
			remove: func(ctx context.Context, made bool) error { return site.RemoveConsumer(ctx, c, made) },
		})
	}
	for i, r := range e.Footprint.Rows {
		parts = append(parts, part{
			name: "row " + r.Key + " of " + r.Bucket, owned: &e.Rows[i],
			look:   func(ctx context.Context) (Presence, error) { return site.Row(ctx, r) },
			make:   func(ctx context.Context) error { return site.MakeRow(ctx, r) },
			remove: func(ctx context.Context, made bool) error { return site.RemoveRow(ctx, r, made) },
		})
	}
	return parts
}

// fork is an entry whose parts can be said to be somebody else's without saying so of e.
func fork(e Entry) Entry {
	e.Consumers, e.Rows = slices.Clone(e.Consumers), slices.Clone(e.Rows)
	return e
}

// anyOurs reports whether there is, or may be, anything to undo.
func anyOurs(e Entry) bool {
	e = fork(e)
	return slices.ContainsFunc(partsOf(&e, nil), part.ours)
}

func (p part) ours() bool {
	return *p.owned == messages.OwnershipOurs || *p.owned == messages.OwnershipMade
}
