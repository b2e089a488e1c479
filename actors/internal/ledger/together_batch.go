package ledger

import (
	"context"
	"errors"
	"slices"

	"github.com/cotal-ai/authplane/messages"
)

// batch makes one batch of what passengers want, and names those whose wishes it holds.
// It ends those for whom there is nothing to write, and who cannot have theirs: where
// the row of what is asked for cannot be read or holds no more, only those who need it.
// A grant that two want to end is ended for the first; the other finds that it is.
func (r *ride) batch(ctx context.Context, all []*passenger) (Batch, []*passenger) {
	asked, row, damage := askedAt(ctx, r.store, r.Instance)
	if damage != nil {
		for _, p := range all {
			if p.wish.asks() > 0 {
				p.end(false, damage)
			}
		}
		all = undone(all)
	}
	for _, p := range all {
		if p.wish.grant.Key == "" && !changes(asked.UIDs, p.wish) {
			p.end(false, nil)
		}
	}
	aboard := fitting(undone(all))
	aboard, asks, err := r.asking(asked, row, aboard)
	if err != nil {
		endAll(aboard, false, err)
		return Batch{}, nil
	}
	var batch Batch
	for _, p := range aboard {
		if p.wish.grant.Key != "" {
			batch.Writes = append(batch.Writes, p.wish.grant)
		}
	}
	if asks.Key != "" {
		batch.Writes = append(batch.Writes, asks)
	}
	if len(batch.Writes) > 0 {
		batch.Witness = batch.Writes[len(batch.Writes)-1].Key // each holds something random
	}
	return batch, aboard
}

// changes reports whether what is asked for would change by what one wants.
func changes(uids []string, w wish) bool {
	_, found := slices.BinarySearch(uids, w.ask)
	return w.ask != "" && !found || slices.ContainsFunc(w.unask, func(uid string) bool {
		_, found := slices.BinarySearch(uids, uid)
		return found
	})
}

// fitting are those of passengers who may travel in one batch, the first always.
func fitting(all []*passenger) (aboard []*passenger) {
	ended, bytes := map[string]bool{}, 0
	for _, p := range all {
		grant := p.wish.grant
		switch {
		case ended[grant.Key]:
			continue
		case len(aboard) > 0 && bytes+len(grant.Value) > endedBytes:
			return aboard
		case grant.Key != "":
			ended[grant.Key] = true
		}
		aboard, bytes = append(aboard, p), bytes+len(grant.Value)
	}
	return aboard
}

// asking is the row of what is asked for once all have their wish; the zero Write if
// that changes nothing. Those for whom it has no more room are ended, in the order in
// which they came, and the others are returned.
func (r *ride) asking(asked Asking, row Row, aboard []*passenger) ([]*passenger, Write, error) {
	witness := r.NewUID()
	kept := asked.UIDs
	for _, p := range aboard {
		kept = without(kept, p.wish.unask)
	}
	for {
		uids := slices.Clone(kept)
		for _, p := range aboard {
			if p.wish.ask != "" {
				uids = append(uids, p.wish.ask)
			}
		}
		slices.Sort(uids)
		if uids = slices.Compact(uids); slices.Equal(uids, asked.UIDs) {
			return aboard, Write{}, nil
		}
		value, err := EncodeAsked(Asking{Instance: r.Instance, UIDs: uids}, witness)
		if err == nil {
			return aboard, Replace(row, value), nil
		}
		last := lastAsking(aboard)
		if !errors.Is(err, messages.Busy) || last < 0 {
			return aboard, Write{}, err
		}
		aboard[last].end(false, err)
		aboard = slices.Delete(aboard, last, last+1)
	}
}

func without(uids, some []string) []string {
	if len(some) == 0 {
		return uids
	}
	out := make(map[string]bool, len(some))
	for _, uid := range some {
		out[uid] = true
	}
	return slices.DeleteFunc(slices.Clone(uids), func(uid string) bool { return out[uid] })
}

// lastAsking is the last of those who ask for a retirement; -1 if nobody does.
func lastAsking(aboard []*passenger) int {
	for i, p := range slices.Backward(aboard) {
		if p.wish.ask != "" {
			return i
		}
	}
	return -1
}
