package ledger

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cotal-ai/authplane/messages"
)

// RevokeFamily revokes credentials of the incarnation that an operation ends, among
// rows as they were enumerated, at most 200 of them; with a credential of a session
// goes the server's half. It reads each anew and writes what is still active, while
// the operation is not over. Refused with messages.OperationNotFound, IncarnationEnded
// when a retirement has superseded the takeover, and RowCorrupt when a row cannot be
// read or the record of a session is missing.
func (b *Barrier) RevokeFamily(ctx context.Context, op messages.Operation, rows []Row) (Step, error) {
	return b.step(ctx, func(ctx context.Context) (Step, error) {
		found, err := b.find(ctx, op.ID)
		switch {
		case err != nil:
			return Step{}, err
		case found.Step == messages.StepSuperseded:
			return Step{}, errSuperseded
		case found.Step == messages.StepDone:
			return Step{}, nil
		}
		if slices.ContainsFunc(rows, func(row Row) bool { return !Matches(CredentialsOf(found.UID), row.Key) }) {
			return Step{}, messages.InternalFault.Because("a credential is of another incarnation than operation %s", op.ID)
		}
		return b.revoke(ctx, rows)
	})
}

// FreezeHandle shuts the gate of a signed handle for ever: from then on nothing is
// derived from it, and an enumeration of LineageOf that has seen the gate at its
// revision names everything that was. Nothing is left to write when it was shut
// before. Refused with messages.HandleNotFound when nothing was ever derived from it.
func (b *Barrier) FreezeHandle(ctx context.Context, h Handle) (Step, error) {
	if !h.isWhole() {
		return Step{}, messages.Malformed.Because("a handle is two tokens of [A-Za-z0-9_-]")
	}
	return b.step(ctx, func(ctx context.Context) (Step, error) {
		gate, err := sourceAt(ctx, b.store, h)
		switch {
		case err != nil:
			return Step{}, err
		case !gate.found:
			return Step{}, messages.HandleNotFound
		case gate.State == SourceFrozen:
			return Step{}, nil
		}
		gate.State = SourceFrozen
		value, err := EncodeSource(gate.SourceGate)
		return Step{Writes: []Write{Replace(gate.row, value)}}, err
	})
}

// FrozenHandle is the write that shut the gate of a handle: an enumeration of its
// lineage counts only if it has seen it. Refused with messages.HandleNotFound when
// nothing was ever derived from it; FreezeHandle comes before.
func (b *Barrier) FrozenHandle(ctx context.Context, h Handle) (at Milestone, err error) {
	err = b.decided(ctx, func(ctx context.Context) error {
		gate, err := sourceAt(ctx, b.store, h)
		switch {
		case err != nil:
			return err
		case !gate.found:
			return messages.HandleNotFound
		case gate.State != SourceFrozen:
			return messages.InternalFault.Because("the gate of %s is open", h)
		}
		at = Milestone{Key: gate.row.Key, Revision: gate.row.Revision}
		return nil
	})
	return at, err
}

// RevokeLineage revokes what was derived from a handle that is frozen, among the rows
// of its lineage as they were enumerated, at most 200 of them; as RevokeFamily.
// Refused with messages.RowCorrupt also when a row names a credential that is missing.
func (b *Barrier) RevokeLineage(ctx context.Context, rows []Row) (Step, error) {
	return b.step(ctx, func(ctx context.Context) (Step, error) {
		named, err := b.lineage(ctx, rows)
		if err != nil {
			return Step{}, err
		}
		return b.revoke(ctx, named)
	})
}

// Lineage reads the credentials that rows of a lineage name.
func (b *Barrier) Lineage(ctx context.Context, rows []Row) (named []Row, err error) {
	err = b.decided(ctx, func(ctx context.Context) error {
		named, err = b.lineage(ctx, rows)
		return err
	})
	return named, err
}

func (b *Barrier) lineage(ctx context.Context, rows []Row) ([]Row, error) {
	return eachRow(ctx, rows, func(ctx context.Context, row Row) (Row, error) {
		l, err := DecodeLineage(row)
		if err != nil {
			return Row{}, err
		}
		return b.named(ctx, CredentialKey(l.UID, l.CredentialID))
	})
}

// Holders are all whose connections the credentials in rows stand for, whether these
// are revoked or not, with the servers of their sessions; sorted, each once.
func (b *Barrier) Holders(ctx context.Context, rows []Row) ([]messages.Principal, error) {
	var all []halves
	err := b.decided(ctx, func(ctx context.Context) (err error) {
		all, err = eachRow(ctx, rows, b.halves)
		return err
	})
	if err != nil {
		return nil, err
	}
	var holders []messages.Principal
	for _, h := range all {
		holders = append(holders, h.caller.Holder)
		for _, s := range h.servers {
			holders = append(holders, s.Holder)
		}
	}
	slices.SortFunc(holders, func(a, b messages.Principal) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Actor, b.Actor))
	})
	return slices.Compact(holders), nil
}

// halves is a credential, and the servers' halves of the sessions it is from.
type halves struct {
	caller  Credential
	row     Row
	servers []served
}

// served is a credential of a service's instance as it was read.
type served struct {
	InstanceCredential
	row Row
}

// halves reads a credential anew, and what ends with it.
func (b *Barrier) halves(ctx context.Context, row Row) (halves, error) {
	var h halves
	var err error
	if h.row, err = b.named(ctx, row.Key); err != nil {
		return h, err
	}
	if h.caller, err = DecodeCredential(h.row); err != nil {
		return h, err
	}
	for _, id := range SessionsOf(h.caller.Chain) {
		row, err := b.named(ctx, SessionKey(id))
		if err != nil {
			return h, err
		}
		session, err := DecodeSession(row)
		if err != nil {
			return h, err
		}
		if row, err = b.named(ctx, InstanceCredentialKey(session.Endpoint, session.Instance, session.ServerCredential())); err != nil {
			return h, err
		}
		half, err := DecodeInstanceCredential(row)
		if err != nil {
			return h, err
		}
		h.servers = append(h.servers, served{half, row})
	}
	return h, nil
}

// revoke makes the step that revokes credentials and their other halves.
func (b *Barrier) revoke(ctx context.Context, rows []Row) (Step, error) {
	if len(rows) > revokeAtOnce {
		return Step{}, messages.InternalFault.Because("at most %d credentials are revoked at once", revokeAtOnce)
	}
	all, err := eachRow(ctx, rows, b.halves)
	if err != nil {
		return Step{}, err
	}
	var step Step
	for _, h := range all {
		if h.caller.State == CredentialActive {
			h.caller.State = CredentialRevoked
			value, err := EncodeCredential(h.caller)
			if err != nil {
				return Step{}, err
			}
			step.Writes = append(step.Writes, Replace(h.row, value))
		}
		for _, s := range h.servers {
			if s.State != CredentialActive {
				continue
			}
			s.State = CredentialRevoked
			value, err := EncodeInstanceCredential(s.InstanceCredential)
			if err != nil {
				return Step{}, err
			}
			step.Writes = append(step.Writes, Replace(s.row, value))
		}
	}
	return step, nil
}

// named reads a row that another one names; both were written at once.
func (b *Barrier) named(ctx context.Context, key string) (Row, error) {
	row, found, err := b.store.Get(ctx, key)
	if err == nil && !found {
		err = corrupt(key, "it is missing, and another row names it")
	}
	return row, err
}

// eachRow does something with every row, several at once, and keeps their order.
func eachRow[V any](ctx context.Context, rows []Row, do func(context.Context, Row) (V, error)) ([]V, error) {
	results := make([]V, len(rows))
	doing, ctx := errgroup.WithContext(ctx)
	doing.SetLimit(readAtOnce)
	for i, row := range rows {
		doing.Go(func() (err error) {
			results[i], err = do(ctx, row)
			return err
		})
	}
	return results, doing.Wait()
}

// source is the gate of a handle as it was found.
type source struct {
	SourceGate
	row   Row
	found bool
}

func sourceAt(ctx context.Context, from Source, h Handle) (source, error) {
	row, found, err := from.Get(ctx, SourceKey(h))
	if err != nil || !found {
		return source{SourceGate: SourceGate{Handle: h, State: SourceOpen}, row: Row{Key: SourceKey(h)}}, err
	}
	gate, err := DecodeSource(row)
	return source{SourceGate: gate, row: row, found: true}, err
}
