package ledger

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// IssueToInstance asks for credentials of one process of an instance.
type IssueToInstance struct {
	Endpoint, Instance string
	// Epoch is the process that is to have them.
	Epoch uint64
	// Principal is the instance's own, as whoever asks knows it.
	Principal messages.Principal
	// Credentials are what is issued together, 1 to MaxIssued, each active, with an id of
	// its own, of that instance and epoch, and expiring later than now, in whole
	// milliseconds. Whoever asks chooses the ids, so that he may ask again.
	Credentials []InstanceCredential
}

// MaxIssued is the most credentials that are issued together.
const MaxIssued = MaxBatch - 1

// Issuer issues to the registered processes of instances. It is safe for concurrent
// use, also by several processes.
type Issuer struct {
	store *Store
	now   func() time.Time
	newID func() string
}

// NewIssuer writes to store. Of options it takes the clock and NewUID, for the random
// part of what is written.
func NewIssuer(store *Store, options Options) *Issuer {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.NewUID == nil {
		options.NewUID = names.NewUID
	}
	return &Issuer{store: store, now: options.Now, newID: options.NewUID}
}

// Issue records credentials through the gate of an instance, all or none, and returns
// the gate. Once it answers, whoever registers after finds them among those to
// revoke; only then may anything secret be released. Asking for the very same again
// answers the same, as long as the gate is open at that epoch.
//
// Refused, with nothing written, with messages.InstanceNotFound, InstanceForeign when
// the instance is another principal's, InstanceSuperseded when another process than
// that of the epoch is registered, InstanceNotOpen while a registration holds the
// gate, CredentialGone when one of them was revoked since, and CredentialConflict when
// an id names another credential, or they were not issued together. It may also fail
// with messages.Malformed, Contended, BrokerAway, RowCorrupt and OutcomeUnknown.
func (i *Issuer) Issue(ctx context.Context, ask IssueToInstance) (messages.Instance, error) {
	var instance messages.Instance
	err := checkIssue(ask)
	if err == nil {
		err = i.store.decide(ctx, func(ctx context.Context) (err error) {
			instance, err = i.attempt(ctx, ask)
			return err
		})
	}
	if err != nil {
		return messages.Instance{}, fmt.Errorf("issue to %s of %s: %w", ask.Instance, ask.Endpoint, err)
	}
	return instance, nil
}

// Gate reads the gate of an instance for a process that asks to be issued something.
// Refused as Issue is, whoever the instance belongs to.
func (i *Issuer) Gate(ctx context.Context, endpoint, instance string, epoch uint64) (gate messages.Instance, err error) {
	if err := CheckInstance(endpoint, instance); err != nil {
		return messages.Instance{}, err
	}
	err = i.store.decide(ctx, func(ctx context.Context) (err error) {
		_, gate, err = i.open(ctx, IssueToInstance{Endpoint: endpoint, Instance: instance, Epoch: epoch})
		return err
	})
	return gate, err
}

func checkIssue(ask IssueToInstance) error {
	if err := CheckInstance(ask.Endpoint, ask.Instance); err != nil {
		return err
	}
	if _, err := parseHolder(ask.Principal.String()); err != nil {
		return err
	}
	if len(ask.Credentials) == 0 || len(ask.Credentials) > MaxIssued {
		return messages.Malformed.Because("1 to %d credentials are issued together, not %d", MaxIssued, len(ask.Credentials))
	}
	ids := make(map[string]bool, len(ask.Credentials))
	for _, c := range ask.Credentials {
		_, err := parseHolder(c.Holder.String())
		switch {
		case !isToken(c.ID) || ids[c.ID]:
			return messages.Malformed.Because("a credential is one token of [A-Za-z0-9_-], each another")
		case err != nil:
			return err
		case c.Endpoint != ask.Endpoint || c.Instance != ask.Instance || c.Epoch != ask.Epoch || c.Epoch > largestNumber:
			return messages.Malformed.Because("a credential is of the process that it is issued to")
		case c.State != CredentialActive || !isInstant(millis(c.Expires)):
			return messages.Malformed.Because("a credential is active, and expires at some time")
		}
		ids[c.ID] = true
	}
	return nil
}

// attempt reads the gate and what is behind it, decides, and writes. The gate is
// written also where all is issued already: then it was open when that was said.
func (i *Issuer) attempt(ctx context.Context, ask IssueToInstance) (messages.Instance, error) {
	row, instance, err := i.open(ctx, ask)
	if err != nil {
		return instance, err
	}
	writes, err := i.missing(ctx, ask)
	if err != nil {
		return instance, err
	}
	value, err := EncodeInstance(instance, i.newID())
	if err != nil {
		return instance, err
	}
	_, err = i.store.Apply(ctx, Batch{Writes: append(writes, Replace(row, value)), Witness: row.Key})
	return instance, err
}

// open reads the gate, and refuses what may not be issued through it. Without a
// principal it may be anybody's.
func (i *Issuer) open(ctx context.Context, ask IssueToInstance) (Row, messages.Instance, error) {
	row, found, err := i.store.Get(ctx, InstanceKey(ask.Endpoint, ask.Instance))
	if err != nil {
		return row, messages.Instance{}, err
	}
	if !found {
		return row, messages.Instance{}, messages.InstanceNotFound
	}
	instance, err := DecodeInstance(row)
	switch {
	case err != nil:
	case !ask.Principal.IsZero() && instance.Principal != ask.Principal:
		err = messages.InstanceForeign
	case instance.Epoch != ask.Epoch:
		err = messages.InstanceSuperseded.Because("this is process %d, and %d is registered", ask.Epoch, instance.Epoch)
	case instance.State != messages.InstanceOpen:
		err = messages.InstanceNotOpen
	}
	return row, instance, err
}

// missing are the credentials to write: all, or none when they stand already.
func (i *Issuer) missing(ctx context.Context, ask IssueToInstance) ([]Write, error) {
	var writes []Write
	for _, c := range ask.Credentials {
		key := InstanceCredentialKey(c.Endpoint, c.Instance, c.ID)
		value, err := EncodeInstanceCredential(c)
		if err != nil {
			return nil, err
		}
		row, found, err := i.store.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if !found {
			writes = append(writes, Create(key, value))
			continue
		}
		if err := stands(row, c); err != nil {
			return nil, err
		}
	}
	if len(writes) != 0 && len(writes) != len(ask.Credentials) {
		return nil, messages.CredentialConflict
	}
	for _, c := range ask.Credentials[:len(writes)] {
		if err := checkExpiry(c.Expires, i.now()); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// stands refuses a row that is not the very credential c, still active.
func stands(row Row, c InstanceCredential) error {
	found, err := DecodeInstanceCredential(row)
	if err != nil {
		return err
	}
	c.State = found.State
	value, err := EncodeInstanceCredential(c)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(value, row.Value):
		return messages.CredentialConflict
	case found.State != CredentialActive:
		return messages.CredentialGone
	}
	return nil
}
