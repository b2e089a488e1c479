package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// RevokeGrant ends a principal's grant and, in the same batch, its incarnation;
// then, each in a batch of its own, every machine's grant below it. When it
// answers, all of it is durable. A process that dies in between has denied the
// principal and, since their chain no longer holds, everybody below; asking again
// finishes the rest. So revoking what is revoked succeeds. Refused with
// messages.GrantNotFound where no grant ever stood. A row that cannot be read stops
// nobody else's end; since it may be of one below, the answer is then RowCorrupt,
// with its key in the cause, and asking again finishes once it can be read.
func (w *Writer) RevokeGrant(ctx context.Context, ask messages.RevokeGrant) (messages.GrantWritten, error) {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return messages.GrantWritten{}, err
	}
	if err := checkContent(messages.Allowance{}, "", ask.By); err != nil {
		return messages.GrantWritten{}, err
	}
	ended, err := w.end(ctx, ask.Principal, "", ask.By)
	if err != nil {
		return messages.GrantWritten{}, err
	}
	if err := w.endBelow(ctx, ask); err != nil {
		return messages.GrantWritten{}, err
	}
	return written(ended, messages.Secret{}), nil
}

// endBelow ends the machines below a principal whose own grant is revoked. It lists
// after the parent's end is durable and under a proved leader: a child is written
// together with a touch of its parent's grant, so none can be missed.
func (w *Writer) endBelow(ctx context.Context, ask messages.RevokeGrant) error {
	done := map[messages.Principal]bool{ask.Principal: true}
	var unread, unended error
	for above := []messages.Principal{ask.Principal}; len(above) > 0; {
		if err := w.store.Sync(ctx); err != nil {
			return err
		}
		all, unreadable, err := listGrants(ctx, w.store, grantsOf(ask.Principal.Owner))
		if err != nil {
			return err
		}
		unread = unreadable
		under := map[messages.Principal]bool{}
		for _, p := range above {
			under[p] = true
		}
		above = nil
		for _, g := range all {
			if !under[g.Parent] || done[g.Principal] {
				continue
			}
			if g.Kind == messages.Managed && g.State == messages.GrantLive {
				_, err := w.end(ctx, g.Principal, g.UID, ask.By)
				if err != nil && !errors.Is(err, messages.RowCorrupt) {
					return err
				}
				unended = errors.Join(unended, err)
			}
			done[g.Principal] = true
			above = append(above, g.Principal)
		}
	}
	if err := errors.Join(unread, unended); err != nil {
		return messages.RowCorrupt.From(fmt.Errorf("some below %s may not have been ended: %w", ask.Principal, err))
	}
	return nil
}

// end makes the grant of one principal revoked and its incarnation retired: the
// one named, or without a name the one it finds.
func (w *Writer) end(ctx context.Context, p messages.Principal, uid, by string) (messages.Grant, error) {
	ending := &ending{of: p, by: by, uid: uid, witness: w.NewUID()}
	err := w.transition(ctx, func(ctx context.Context) error { return ending.attempt(ctx, w) })
	return ending.result, err
}

// ending is one revocation across its attempts.
type ending struct {
	of      messages.Principal
	by      string
	witness string
	// uid is the incarnation that is being ended; if none was named, the one met first.
	uid    string
	result messages.Grant
}

func (e *ending) attempt(ctx context.Context, w *Writer) error {
	before, err := w.grantOf(ctx, e.of)
	if err != nil {
		return err
	}
	if !before.found {
		return messages.GrantNotFound
	}
	if e.uid == "" {
		e.uid = before.UID
	}
	if before.UID != e.uid {
		return nil // ended by another, and granted anew since
	}
	head, err := w.headOf(ctx, e.of)
	if err != nil {
		return err
	}
	batch, err := e.batch(before, head, w)
	if err != nil || len(batch.Writes) == 0 {
		return err
	}
	_, err = w.store.Apply(ctx, batch)
	return err
}

// batch is what is left to write; nothing when all is done.
func (e *ending) batch(before standing, head life, w *Writer) (Batch, error) {
	var batch Batch
	e.result = before.Grant
	if before.live() {
		e.result.State, e.result.By, e.result.At = messages.GrantRevoked, e.by, w.now()
		e.result.Revision++
		value, err := EncodeGrant(e.result, e.witness)
		if err != nil {
			return Batch{}, err
		}
		batch = Batch{Writes: []Write{Replace(before.row, value)}, Witness: before.row.Key}
	}
	// A retirement under way ends the head itself; a takeover is superseded.
	if head.found && head.UID == before.UID && (head.State == messages.HeadActive || head.State == messages.HeadFrozen) {
		over := head.Head
		over.State, over.Operation, over.Root = messages.HeadRetired, messages.OperationRef{}, messages.Root{}
		value, err := EncodeHead(over)
		if err != nil {
			return Batch{}, err
		}
		batch.Writes = append(batch.Writes, Replace(head.row, value))
	}
	return batch, nil
}
