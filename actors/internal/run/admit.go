package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// tries is how often a decision is made anew when its write came too late. Rows are
// created and never changed, so the second one finds what it lost to.
const tries = 8

// Admit admits a run, as messages.AdmitRun says.
func (d *Desk) Admit(ctx context.Context, ask messages.AdmitRun) (messages.RunAdmitted, error) {
	a, err := d.start(ask)
	if err == nil {
		err = d.Receipts.Check(ctx, ask.Controller)
	}
	var answer messages.RunAdmitted
	if err == nil {
		answer, err = again(ctx, d, func() (messages.RunAdmitted, error) { return d.admit(ctx, ask, a) })
	}
	if err == nil { // whoever was overtaken meanwhile hears nothing
		err = d.Receipts.Check(ctx, ask.Controller)
	}
	if err != nil {
		return messages.RunAdmitted{}, fmt.Errorf("admit %s: %w", ask.Run, err)
	}
	return answer, nil
}

// CheckAdmission refuses what can be seen to be wrong with an admission offline.
func (d *Desk) CheckAdmission(ask messages.AdmitRun) error {
	_, err := d.start(ask)
	return err
}

func (d *Desk) start(ask messages.AdmitRun) (*asked, error) {
	if err := check(ask.Controller, ask.Run); err != nil {
		return nil, err
	}
	a, err := d.read(runrequest.Start, ask.Controller, ask.Request)
	if err == nil && (a.body.Run != "" || a.body.Step != "") {
		err = messages.RunExceeded.Because("who starts a run does not name one")
	}
	return a, err
}

// check refuses what names no controller or no run.
func check(who messages.RunController, run string) error {
	if err := runjournal.CheckRun(run); err != nil {
		return err
	}
	return ledger.CheckRegistration(messages.RegisterInstance{Endpoint: who.Endpoint, Instance: who.Instance, Principal: who.Principal})
}

// again decides under a proved leader, until what is decided could be written.
func again[T any](ctx context.Context, d *Desk, decide func() (T, error)) (answer T, err error) {
	for range tries {
		if err = d.Records.Sync(ctx); err != nil {
			return answer, err
		}
		if answer, err = decide(); !errors.Is(err, ledger.ErrLost) {
			return answer, err
		}
	}
	return answer, messages.Contended.From(errors.New(err.Error()))
}

func (d *Desk) admit(ctx context.Context, ask messages.AdmitRun, a *asked) (messages.RunAdmitted, error) {
	asks := use{ask.Controller.Endpoint, a.id, ask.Run, "start"}
	used, err := d.used(ctx, asks)
	if err != nil {
		return messages.RunAdmitted{}, err
	}
	row, found, err := d.Records.Get(ctx, AdmissionKey(ask.Controller.Endpoint, ask.Run))
	if err != nil {
		return messages.RunAdmitted{}, err
	}
	if found {
		return d.same(ctx, ask, a, asks, used, row)
	}
	if used {
		return messages.RunAdmitted{}, ledger.Corrupt(asks.key(), "started a run that was never admitted")
	}
	grant, err := d.confirm(ctx, a)
	if err != nil {
		return messages.RunAdmitted{}, err
	}
	if bytes := wide(grant.Publish) + wide(grant.Subscribe); bytes > maxCeiling {
		return messages.RunAdmitted{}, messages.RunTooWide.Because("its patterns are %d bytes, at most %d", bytes, maxCeiling)
	}
	admission := messages.RunAdmission{Endpoint: asks.Endpoint, Run: ask.Run, Instance: ask.Controller.Instance, Caller: a.subject.Caller, UID: a.subject.UID,
		GrantRevision: grant.Revision, Publish: slices.Clone(orNone(grant.Publish)), Subscribe: slices.Clone(orNone(grant.Subscribe)),
		Subject: a.subject.String(), Request: a.id, Witness: a.witness, AdmittedAt: wholeMillis(d.Now())}
	value, err := encodeAdmission(admission, names.NewUID())
	if err != nil {
		return messages.RunAdmitted{}, err
	}
	started, err := asks.encode()
	if err != nil {
		return messages.RunAdmitted{}, err
	}
	key := AdmissionKey(admission.Endpoint, admission.Run)
	revision, err := d.Records.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Create(asks.key(), started), ledger.Create(key, value)}, Witness: key})
	return messages.RunAdmitted{Admission: admission, Revision: revision}, err
}

// maxCeiling is what the patterns of a run may take together, in bytes, as the permissions
// of one connection: a server takes no longer JWT than 64 KiB.
const maxCeiling = 45 << 10

// wide is what patterns take in a JWT.
func wide(patterns []string) (bytes int) {
	for _, p := range patterns {
		bytes += len(p) + len(`"",`)
	}
	return bytes
}

// same answers for a run that was admitted, if it was for this caller and instance. A
// further request of his is used by it too.
func (d *Desk) same(ctx context.Context, ask messages.AdmitRun, a *asked, asks use, used bool, row ledger.Row) (messages.RunAdmitted, error) {
	admission, err := DecodeAdmission(row)
	switch {
	case err != nil:
		return messages.RunAdmitted{}, err
	case admission.Instance != ask.Controller.Instance, admission.Caller != a.subject.Caller, admission.UID != a.subject.UID:
		return messages.RunAdmitted{}, messages.RunConflict
	}
	if !used {
		if _, err := d.confirm(ctx, a); err != nil {
			return messages.RunAdmitted{}, err
		}
		value, err := asks.encode()
		if err == nil {
			_, err = d.Records.Apply(ctx, ledger.Batch{Writes: []ledger.Write{ledger.Create(asks.key(), value)}})
		}
		if err != nil {
			return messages.RunAdmitted{}, err
		}
	}
	return messages.RunAdmitted{Admission: admission, Revision: row.Revision}, nil
}

// used reports whether a request was used for what it asks now, and refuses one that was
// used for something else.
func (d *Desk) used(ctx context.Context, asks use) (bool, error) {
	row, found, err := d.Records.Get(ctx, asks.key())
	if err != nil || !found {
		return false, err
	}
	was, err := decodeUse(row)
	if err == nil && was != asks {
		err = messages.RunRequestUsed
	}
	return true, err
}

// Admission reads the admission of a run; refused with messages.RunNotFound.
func (d *Desk) Admission(ctx context.Context, endpoint, run string) (messages.RunAdmission, error) {
	row, found, err := d.Records.Get(ctx, AdmissionKey(endpoint, run))
	switch {
	case err != nil:
		return messages.RunAdmission{}, err
	case !found:
		return messages.RunAdmission{}, messages.RunNotFound
	}
	return DecodeAdmission(row)
}
