package ledger

import (
	"context"
	"slices"

	"github.com/cotal-ai/authplane/messages"
)

// LearnServers adds servers to those that were ever met. Where all are known
// nothing is written.
func (w *Writer) LearnServers(ctx context.Context, ask messages.LearnServers) (messages.KnownServers, error) {
	for _, name := range ask.Names {
		if !isServer(name) {
			return messages.KnownServers{}, messages.Malformed.Because("a server's name is 1 to %d printable bytes", maxText)
		}
	}
	return w.roster(ctx, func(known []string) ([]string, error) {
		return slices.Concat(known, ask.Names), nil
	})
}

// ForgetServer takes a server out of those that were ever met. Refused with
// messages.ServerUnknown when it is not among them.
func (w *Writer) ForgetServer(ctx context.Context, ask messages.ForgetServer) (messages.KnownServers, error) {
	met := false // by an attempt of ours, which may have landed
	return w.roster(ctx, func(known []string) ([]string, error) {
		i := slices.Index(known, ask.Name)
		if i < 0 && !met {
			return nil, messages.ServerUnknown
		}
		met = true
		return slices.DeleteFunc(known, func(name string) bool { return name == ask.Name }), nil
	})
}

// roster changes the servers that were ever met, unless they are as they shall be.
func (w *Writer) roster(ctx context.Context, change func(known []string) ([]string, error)) (messages.KnownServers, error) {
	var answer messages.KnownServers
	witness := w.NewUID()
	err := w.transition(ctx, func(ctx context.Context) error {
		known, row, err := rosterAt(ctx, w.store)
		if err != nil {
			return err
		}
		after, err := change(slices.Clone(known))
		if err != nil {
			return err
		}
		slices.Sort(after)
		after = slices.Compact(after)
		if answer.Names = after; slices.Equal(after, known) {
			return nil
		}
		value, err := EncodeRoster(after, witness)
		if err != nil {
			return err
		}
		_, err = w.store.Apply(ctx, Batch{Writes: []Write{Replace(row, value)}, Witness: row.Key})
		return err
	})
	return answer, err
}

func rosterAt(ctx context.Context, source Source) ([]string, Row, error) {
	row, found, err := source.Get(ctx, RosterKey)
	if err != nil || !found {
		return nil, Row{Key: RosterKey}, err
	}
	names, err := DecodeRoster(row)
	return names, row, err
}
