package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// List lists runs, as messages.ListRuns says. Rows that cannot be read hide no others.
func (d *Desk) List(ctx context.Context, ask messages.ListRuns) (messages.Runs, error) {
	filter := "admission.>"
	if ask.Endpoint != "" {
		if !isToken(ask.Endpoint, 1) {
			return messages.Runs{}, messages.Malformed.Because("an endpoint is one token of [A-Za-z0-9_-]")
		}
		filter = "admission." + ask.Endpoint + ".*"
	}
	if err := d.Records.Sync(ctx); err != nil {
		return messages.Runs{}, err
	}
	keys, err := d.Records.List(ctx, filter)
	if err != nil {
		return messages.Runs{}, err
	}
	var all messages.Runs
	for _, key := range keys {
		endpoint, name, _ := strings.Cut(strings.TrimPrefix(key, "admission."), ".")
		one, err := d.header(ctx, endpoint, name)
		switch {
		case errors.Is(err, messages.RowCorrupt):
			all.Unreadable = append(all.Unreadable, key)
		case err != nil:
			return messages.Runs{}, err
		default:
			all.Items = append(all.Items, one)
		}
	}
	slices.SortFunc(all.Items, func(a, b messages.Run) int {
		return cmp.Or(strings.Compare(a.Admission.Endpoint, b.Admission.Endpoint), strings.Compare(a.Admission.Run, b.Admission.Run))
	})
	return all, nil
}

// Show tells one run with its attempts, as messages.ShowRun says.
func (d *Desk) Show(ctx context.Context, ask messages.ShowRun) (messages.Run, error) {
	if err := CheckName(ask.Endpoint, ask.Run); err != nil {
		return messages.Run{}, err
	}
	if err := d.Records.Sync(ctx); err != nil {
		return messages.Run{}, err
	}
	one, err := d.header(ctx, ask.Endpoint, ask.Run)
	if err != nil {
		return messages.Run{}, err
	}
	for n := uint64(1); ; n++ {
		a, err := d.attempt(ctx, ask.Endpoint, ask.Run, n)
		if err != nil {
			return messages.Run{}, err
		}
		if a.Attempt == 0 {
			return one, nil
		}
		one.Attempts = append(one.Attempts, a)
	}
}

func (d *Desk) header(ctx context.Context, endpoint, name string) (messages.Run, error) {
	admission, err := d.Admission(ctx, endpoint, name)
	if err != nil {
		return messages.Run{}, err
	}
	revoked, _, err := d.Revocation(ctx, endpoint, name)
	return messages.Run{Admission: admission, Revoked: revoked}, err
}
