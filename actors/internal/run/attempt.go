package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// Lifetimes of what is issued for a run.
const (
	// ShortestLife is the least that a driver is given, and all that an operator is.
	ShortestLife = time.Minute
	// LongestLife bounds what a space may configure.
	LongestLife = 24 * time.Hour
)

// CheckAttempt refuses what can be seen to be wrong with an attempt offline. standing is
// the longest lifetime.
func (d *Desk) CheckAttempt(ask messages.AttemptRun, standing time.Duration) error {
	if err := check(ask.Controller, ask.Run); err != nil {
		return err
	}
	switch {
	case !isToken(ask.Request, 22):
		return messages.Malformed.Because("a request id is 22 to 64 characters of [A-Za-z0-9_-]")
	case !isToken(ask.Takeover, 1):
		return messages.Malformed.Because("a takeover id is 1 to 64 characters of [A-Za-z0-9_-]")
	case !isCount(ask.Attempt):
		return messages.Malformed.Because("attempts count from 1")
	case !nkeys.IsValidPublicUserKey(ask.Driver), !nkeys.IsValidPublicUserKey(ask.Mediator), ask.Driver == ask.Mediator:
		return messages.Malformed.Because("driver and mediator are two public user keys")
	case ask.Lifetime != 0 && (ask.Lifetime < ShortestLife || ask.Lifetime > standing || ask.Lifetime%time.Second != 0):
		return messages.Malformed.Because("a lifetime is whole seconds from %s to %s", ShortestLife, standing)
	}
	_, err := d.servedAttempt(ask)
	return err
}

// servedAttempt is the request to resume, nil without one.
func (d *Desk) servedAttempt(ask messages.AttemptRun) (*asked, error) {
	if ask.Served.Subject == "" {
		if len(ask.Served.Payload) > 0 || ask.Served.Certificate != "" || ask.Served.Signature != "" {
			return nil, messages.Malformed.Because("a request without a subject is none")
		}
		return nil, nil
	}
	a, err := d.read(runrequest.Resume, ask.Controller, ask.Served)
	if err == nil && (a.body.Run != ask.Run || a.body.Step != "") {
		err = messages.RunExceeded.Because("the request is to resume another run")
	}
	return a, err
}

// Reserve reserves an attempt, as messages.AttemptRun says, before anything is signed for
// it. journal is the run's, empty where it has none. The answer is reserved for the asker:
// signing for it, however often, signs the same.
func (d *Desk) Reserve(ctx context.Context, ask messages.AttemptRun, standing time.Duration, journal *runjournal.History) (messages.RunAttempt, messages.RunAdmission, error) {
	if ask.Lifetime == 0 {
		ask.Lifetime = standing
	}
	fail := func(err error) (messages.RunAttempt, messages.RunAdmission, error) {
		return messages.RunAttempt{}, messages.RunAdmission{}, fmt.Errorf("attempt %d of %s: %w", ask.Attempt, ask.Run, err)
	}
	if err := d.CheckAttempt(ask, standing); err != nil {
		return fail(err)
	}
	if err := d.Receipts.Check(ctx, ask.Controller); err != nil {
		return fail(err)
	}
	var admission messages.RunAdmission
	attempt, err := again(ctx, d, func() (reserved messages.RunAttempt, err error) {
		if admission, err = d.Usable(ctx, ask.Controller, ask.Run); err != nil {
			return messages.RunAttempt{}, err
		}
		if journal.State.Outcome != "" {
			return messages.RunAttempt{}, messages.RunEnded
		}
		return d.reserve(ctx, ask, admission, journal.Head())
	})
	if err == nil { // whoever was overtaken meanwhile gets nothing
		err = d.Receipts.Check(ctx, ask.Controller)
	}
	if err != nil {
		return fail(err)
	}
	return attempt, admission, nil
}

// Usable is the admission of a run for which something may be issued to this controller:
// it is his instance's, was not revoked, and whoever started it is still who he was.
func (d *Desk) Usable(ctx context.Context, who messages.RunController, run string) (messages.RunAdmission, error) {
	admission, err := d.own(ctx, who, run)
	if err != nil {
		return messages.RunAdmission{}, err
	}
	if _, revoked, err := d.Revocation(ctx, who.Endpoint, run); err != nil || revoked {
		if err == nil {
			err = messages.RunRevoked
		}
		return messages.RunAdmission{}, err
	}
	_, err = d.live(ctx, admission.Caller, admission.UID)
	return admission, err
}

// own is the admission of a run of this controller's instance.
func (d *Desk) own(ctx context.Context, who messages.RunController, run string) (messages.RunAdmission, error) {
	admission, err := d.Admission(ctx, who.Endpoint, run)
	switch {
	case errors.Is(err, messages.RunNotFound), err == nil && admission.Instance != who.Instance:
		return messages.RunAdmission{}, messages.RunNotAdmitted
	case err != nil:
		return messages.RunAdmission{}, err
	}
	return admission, nil
}

func (d *Desk) reserve(ctx context.Context, ask messages.AttemptRun, admission messages.RunAdmission, head uint64) (messages.RunAttempt, error) {
	endpoint := ask.Controller.Endpoint
	if later, err := d.attempt(ctx, endpoint, ask.Run, ask.Attempt+1); err != nil || later.Attempt > 0 {
		return messages.RunAttempt{}, taken(err)
	}
	was, err := d.attempt(ctx, endpoint, ask.Run, ask.Attempt)
	if err != nil {
		return messages.RunAttempt{}, err
	}
	if was.Attempt > 0 {
		return d.reserved(ask, was)
	}
	var known uint64
	if ask.Attempt > 1 {
		before, err := d.attempt(ctx, endpoint, ask.Run, ask.Attempt-1)
		if err != nil || before.Attempt == 0 {
			return messages.RunAttempt{}, taken(err)
		}
		known = before.Head
	}
	if head < known {
		return messages.RunAttempt{}, d.shorter()
	}
	now := d.Now().Truncate(time.Second).UTC()
	next := messages.RunAttempt{Endpoint: endpoint, Run: ask.Run, Instance: ask.Controller.Instance, Attempt: ask.Attempt, Epoch: ask.Controller.Epoch,
		Request: ask.Request, Takeover: ask.Takeover, Driver: ask.Driver, Mediator: ask.Mediator, Head: head, ReservedAt: now, Expires: now.Add(ask.Lifetime)}
	return next, d.write(ctx, ask, admission, next)
}

// shorter is what is said of a journal that was longer.
func (d *Desk) shorter() error {
	if d.Replicas > 1 {
		return messages.Unproved.Because("the journal is shorter than it was, unless who answered does not lead any more")
	}
	return messages.JournalDamaged.Because("it is shorter than it was")
}

// reserved is an attempt that stands already: the asker's own, or somebody else's.
func (d *Desk) reserved(ask messages.AttemptRun, was messages.RunAttempt) (messages.RunAttempt, error) {
	same := was
	same.Instance, same.Epoch, same.Request, same.Takeover = ask.Controller.Instance, ask.Controller.Epoch, ask.Request, ask.Takeover
	same.Driver, same.Mediator, same.Expires = ask.Driver, ask.Mediator, was.ReservedAt.Add(ask.Lifetime)
	switch {
	case same != was:
		return messages.RunAttempt{}, messages.RunAttemptTaken
	case !d.Now().Before(was.Expires):
		return messages.RunAttempt{}, messages.CredentialExpired
	}
	return was, nil
}

// write creates the row of an attempt, and says with it what the request was used for.
func (d *Desk) write(ctx context.Context, ask messages.AttemptRun, admission messages.RunAdmission, next messages.RunAttempt) error {
	value, err := encodeAttempt(next, names.NewUID())
	if err != nil {
		return err
	}
	key := AttemptKey(next.Endpoint, next.Run, next.Attempt)
	writes := []ledger.Write{ledger.Create(key, value)}
	a, err := d.servedAttempt(ask)
	if err != nil {
		return err
	}
	if a != nil {
		asks := use{next.Endpoint, a.id, next.Run, "attempt." + strconv.FormatUint(next.Attempt, 10)}
		spent, err := d.spend(ctx, a, admission, asks)
		if err != nil {
			return err
		}
		writes = append(writes, spent...)
	}
	_, err = d.Records.Apply(ctx, ledger.Batch{Writes: writes, Witness: key})
	return err
}

// spend makes sure that somebody of the run's owner asked, and is what it takes to say
// what for; nothing where it stands already.
func (d *Desk) spend(ctx context.Context, a *asked, admission messages.RunAdmission, asks use) ([]ledger.Write, error) {
	if a.subject.Caller.Owner != admission.Caller.Owner {
		return nil, messages.RunExceeded.Because("the run is another owner's")
	}
	used, err := d.used(ctx, asks)
	if err != nil || used {
		return nil, err
	}
	if _, err := d.confirm(ctx, a); err != nil {
		return nil, err
	}
	value, err := asks.encode()
	if err != nil {
		return nil, err
	}
	return []ledger.Write{ledger.Create(asks.key(), value)}, nil
}

// attempt reads one attempt; a zero one is absence.
func (d *Desk) attempt(ctx context.Context, endpoint, run string, n uint64) (messages.RunAttempt, error) {
	row, found, err := d.Records.Get(ctx, AttemptKey(endpoint, run, n))
	if err != nil || !found {
		return messages.RunAttempt{}, err
	}
	return DecodeAttempt(row)
}

func taken(err error) error {
	if err == nil {
		err = messages.RunAttemptTaken
	}
	return err
}
