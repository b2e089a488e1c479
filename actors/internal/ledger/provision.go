package ledger

import (
	"bytes"
	"context"
	"errors"

	"github.com/cotal-ai/authplane/messages"
)

// ListProvisions asks the writer for the keys of footprints. Answered by ProvisionKeys,
// read under a proved leader.
type ListProvisions struct{ Filter string }

// ProvisionKeys answers ListProvisions.
type ProvisionKeys struct{ Keys []string }

// ReadProvision asks the writer for one footprint. Answered by ProvisionRead.
type ReadProvision struct{ Key string }

// ProvisionRead answers ReadProvision. Found false is true absence.
type ProvisionRead struct {
	Found     bool
	Provision messages.Provision
	Revision  uint64
}

// WriteProvision asks the writer to put a footprint over the revision it was read at, 0
// for one that is not there. The same one may be sent again: Witness, a uid of this
// write alone, tells that it landed. Answered by ProvisionWritten.
type WriteProvision struct {
	Provision messages.Provision
	Revision  uint64
	Witness   string
}

// GrantProvision is WriteProvision of the first step after the plan together with the
// grant, all of it or nothing. The grant is that of the ask, for the incarnation of the
// footprint. Refused as PutGrant is.
type GrantProvision struct {
	WriteProvision
	Ask messages.EnrolMachine
}

// ProvisionWritten answers WriteProvision and GrantProvision.
type ProvisionWritten struct {
	// Moved says that another write came first, or that it cannot be told any more whether
	// this one did: whoever asked reads again.
	Moved    bool
	Revision uint64
}

// ListProvisions lists the keys of footprints.
func (w *Writer) ListProvisions(ctx context.Context, ask ListProvisions) (ProvisionKeys, error) {
	if err := w.store.Sync(ctx); err != nil {
		return ProvisionKeys{}, err
	}
	keys, err := w.store.List(ctx, ask.Filter)
	return ProvisionKeys{keys}, err
}

// ReadProvision reads one footprint.
func (w *Writer) ReadProvision(ctx context.Context, ask ReadProvision) (ProvisionRead, error) {
	row, found, err := w.store.Get(ctx, ask.Key)
	if err != nil || !found {
		return ProvisionRead{}, err
	}
	p, err := DecodeProvision(row)
	return ProvisionRead{Found: true, Provision: p, Revision: row.Revision}, err
}

// WriteProvision writes one footprint.
func (w *Writer) WriteProvision(ctx context.Context, ask WriteProvision) (ProvisionWritten, error) {
	write, err := ask.write()
	if err != nil {
		return ProvisionWritten{}, err
	}
	revision, err := w.store.Apply(ctx, Batch{Writes: []Write{write}, Witness: write.Key})
	if errors.Is(err, ErrLost) {
		return w.wrote(ctx, write)
	}
	return ProvisionWritten{Revision: revision}, err
}

func (w WriteProvision) write() (Write, error) {
	value, err := EncodeProvision(w.Provision, w.Witness)
	key := ProvisionKey(w.Provision.Principal, w.Provision.UID, w.Provision.TokenHash)
	return Replace(Row{Key: key, Revision: w.Revision}, value), err
}

// wrote finds out whether a write that was lost to another one was lost to itself,
// sent before.
func (w *Writer) wrote(ctx context.Context, write Write) (ProvisionWritten, error) {
	if err := w.store.Sync(ctx); err != nil {
		return ProvisionWritten{}, err
	}
	row, found, err := w.store.Get(ctx, write.Key)
	switch {
	case err != nil:
		return ProvisionWritten{}, err
	case found && bytes.Equal(row.Value, write.Value):
		return ProvisionWritten{Revision: row.Revision}, nil
	}
	return ProvisionWritten{Moved: true}, nil
}

// GrantProvision grants a machine and says so in the journal of its footprint.
func (w *Writer) GrantProvision(ctx context.Context, ask GrantProvision) (ProvisionWritten, error) {
	p := ask.Provision
	if err := CheckEnrolment(ask.Ask); err != nil {
		return ProvisionWritten{}, err
	}
	write, err := ask.write()
	if err != nil {
		return ProvisionWritten{}, err
	}
	grant := messages.Grant{Principal: p.Principal, Kind: messages.Managed, UID: p.UID, Revision: 1, Allowance: copied(ask.Ask.Allowance),
		Parent: ask.Ask.Parent, Label: ask.Ask.Label, TokenHash: p.TokenHash, State: messages.GrantLive, By: ask.Ask.By, At: w.now()}
	var answer ProvisionWritten
	err = w.transition(ctx, func(ctx context.Context) (err error) {
		answer, err = w.grantProvision(ctx, grant, write, ask.Witness)
		return err
	})
	return answer, err
}

// grantProvision is one attempt. Whoever else grants the name writes the grant, so of
// any number at once one is granted.
func (w *Writer) grantProvision(ctx context.Context, grant messages.Grant, journal Write, witness string) (ProvisionWritten, error) {
	now, err := w.wrote(ctx, journal)
	if err != nil || !now.Moved {
		return now, err // an answer of ours was lost
	}
	row, _, err := w.store.Get(ctx, journal.Key)
	if err != nil || row.Revision != journal.Pin.Revision {
		return ProvisionWritten{Moved: true}, err
	}
	before, err := w.grantOf(ctx, grant.Principal)
	switch {
	case err != nil:
		return ProvisionWritten{}, err
	case before.live():
		return ProvisionWritten{}, messages.GrantStands
	}
	head, err := w.headOf(ctx, grant.Principal)
	if err != nil {
		return ProvisionWritten{}, err
	}
	if !head.over() {
		return ProvisionWritten{}, messages.IncarnationStanding
	}
	touched, err := w.attenuate(ctx, grant)
	if err != nil {
		return ProvisionWritten{}, err
	}
	value, err := EncodeGrant(grant, witness)
	if err != nil {
		return ProvisionWritten{}, err
	}
	writes := append([]Write{Replace(before.row, value)}, touched...)
	revision, err := w.store.Apply(ctx, Batch{Writes: append(writes, journal), Witness: journal.Key})
	return ProvisionWritten{Revision: revision}, err
}

// CheckTokenHash refuses what is no hash of a machine's secret.
func CheckTokenHash(hash string) error {
	if !isHash(hash) {
		return messages.Malformed.Because("a secret's hash is %d characters of lower-case hex; the secret itself does not travel", 2*hashBytes)
	}
	return nil
}

// CheckEnrolment refuses a machine that could never be granted, before anything is read.
func CheckEnrolment(ask messages.EnrolMachine) error {
	if err := CheckTokenHash(ask.TokenHash); err != nil {
		return err
	}
	return checkPut(messages.PutGrant{Principal: ask.Principal, Kind: messages.Managed, Allowance: ask.Allowance, Parent: ask.Parent, Label: ask.Label, By: ask.By})
}

// NewProvision is a footprint of which nothing is there yet.
func NewProvision(p messages.Principal, uid, tokenHash string, footprint messages.Footprint) messages.Provision {
	made := messages.Provision{Principal: p, UID: uid, TokenHash: tokenHash, Step: messages.ProvisionPlanned, Footprint: footprint}
	for range footprint.Consumers {
		made.Consumers = append(made.Consumers, messages.OwnershipOpen)
	}
	for range footprint.Rows {
		made.Rows = append(made.Rows, messages.OwnershipOpen)
	}
	return made
}
