package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// EditGrant replaces what a live grant allows and its label, and keeps its
// incarnation. Refused with messages.GrantNotFound without a live grant, GrantMoved
// unless Revision is the current one, and for a machine with ParentMissing or
// ScopeExceeded when it would not lie inside the whole chain of its parents.
//
// RotateSecret makes a machine's secret anew; a person's grant has none, and is
// refused as Malformed.
func (w *Writer) EditGrant(ctx context.Context, ask messages.EditGrant) (messages.GrantWritten, error) {
	if err := checkEdit(ask); err != nil {
		return messages.GrantWritten{}, err
	}
	edit := &edit{ask: ask, witness: w.NewUID(), at: w.now()}
	if ask.RotateSecret {
		edit.secret = w.NewSecret()
	}
	if err := w.transition(ctx, func(ctx context.Context) error { return edit.attempt(ctx, w) }); err != nil {
		return messages.GrantWritten{}, err
	}
	return written(edit.result, edit.secret), nil
}

// edit is one edit across its attempts.
type edit struct {
	ask     messages.EditGrant
	witness string
	secret  messages.Secret
	at      time.Time
	// uid is the incarnation it was decided for, once it was sent.
	uid       string
	overtaken bool
	result    messages.Grant
}

func (e *edit) attempt(ctx context.Context, w *Writer) error {
	before, err := w.grantOf(ctx, e.ask.Principal)
	if err != nil {
		return err
	}
	if err := e.refusal(before); err != nil {
		return err
	}
	after := before.Grant
	after.Revision++
	after.Allowance, after.Label, after.By, after.At = copied(e.ask.Allowance), e.ask.Label, e.ask.By, e.at
	if e.ask.RotateSecret {
		after.TokenHash = HashSecret(e.secret)
	}
	batch := Batch{Witness: before.row.Key}
	if after.Kind == messages.Managed {
		if batch.Writes, err = w.attenuate(ctx, after); err != nil {
			return err
		}
	}
	value, err := EncodeGrant(after, e.witness)
	if err != nil {
		return err
	}
	batch.Writes = append(batch.Writes, Replace(before.row, value))
	e.result, e.uid = after, after.UID
	_, err = w.store.Apply(ctx, batch)
	e.overtaken = e.overtaken || errors.Is(err, ErrOvertaken)
	return err
}

// refusal says why the grant as it stands cannot be edited so.
func (e *edit) refusal(before standing) error {
	// Our own edit is one revision on. What stands further on may have been written
	// over it, and then saying "moved" would deny what we did.
	if e.overtaken && before.found && (before.UID != e.uid || before.Revision > e.ask.Revision+1) {
		return messages.OutcomeUnknown
	}
	switch {
	case !before.live():
		return messages.GrantNotFound
	case before.Revision != e.ask.Revision:
		return messages.GrantMoved.Because("it is at revision %d", before.Revision)
	case e.ask.RotateSecret && before.Kind != messages.Managed:
		return messages.Malformed.Because("only a machine has a secret to rotate")
	}
	return nil
}

func checkEdit(ask messages.EditGrant) error {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return err
	}
	return checkContent(ask.Allowance, ask.Label, ask.By)
}
