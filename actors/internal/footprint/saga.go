package footprint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// tries bounds how often one enrolment begins anew because others were faster, and
// firstPause and mostPause how long it leaves them before the second and before later
// tries: twice as long each time, with full jitter.
const (
	tries      = 12
	firstPause = 10 * time.Millisecond
	mostPause  = time.Second
)

// pause lets others get on before the n-th try, from 0; the first begins at once.
func pause(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	wait := time.NewTimer(rand.N(min(firstPause<<(n-1), mostPause)) + time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return messages.Contended.From(context.Cause(ctx))
	}
}

// Config is what the sagas of a space need.
type Config struct {
	Space string
	// Footprint passed Check; an empty one leaves the journal and the grant.
	Footprint messages.Footprint
	Journal   Journal
	Sites     Sites
	// Lives is how long a connection of Sites.Provision may act, by any clock.
	Lives time.Duration
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Sagas provisions the machines of one space. It is safe for concurrent use, also by
// several processes.
type Sagas struct {
	Config
	turns turns
	ended ended
}

// New makes the sagas of a space.
func New(c Config) *Sagas {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Sagas{Config: c}
}

// CheckAsk refuses an enrolment that could never be, before anything is read, and one
// with lists that are longer than anybody's who is not an operator may be.
func CheckAsk(ask messages.EnrolMachine) error {
	for _, list := range []struct {
		name string
		of   []string
	}{{"scope", ask.Allowance.Scope}, {"publish", ask.Allowance.Publish}, {"subscribe", ask.Allowance.Subscribe}} {
		if len(list.of) > MaxList {
			return messages.Malformed.Because("%s: %d entries, at most %d", list.name, len(list.of), MaxList)
		}
	}
	return ledger.CheckEnrolment(ask)
}

// MaxList is how many entries each list of an enrolment may have.
const MaxList = 64

// Enrol grants a machine and makes its footprint, as messages.EnrolMachine says.
func (s *Sagas) Enrol(ctx context.Context, ask messages.EnrolMachine) (messages.MachineEnrolled, error) {
	if err := ledger.CheckEnrolment(ask); err != nil {
		return messages.MachineEnrolled{}, err
	}
	leave, err := s.turns.enter(ctx, ask.Principal)
	if err != nil {
		return messages.MachineEnrolled{}, err
	}
	defer leave()
	answer, err := s.enrol(ctx, ask)
	if err != nil {
		return messages.MachineEnrolled{}, fmt.Errorf("enrol %s: %w", ask.Principal, err)
	}
	return answer, nil
}

func (s *Sagas) enrol(ctx context.Context, ask messages.EnrolMachine) (messages.MachineEnrolled, error) {
	for n := range tries {
		if err := pause(ctx, n); err != nil {
			return messages.MachineEnrolled{}, err
		}
		standing, err := s.Journal.Standing(ctx, ask.Principal)
		if err != nil {
			return messages.MachineEnrolled{}, err
		}
		again := standing.HasGrant && standing.Grant.State == messages.GrantLive
		var e Entry
		if again {
			e, err = s.retry(ctx, ask, standing)
		} else {
			e, err = s.begin(ctx, ask, standing)
		}
		switch {
		case errors.Is(err, ErrMoved), !again && errors.Is(err, messages.GrantStands):
			continue // somebody was faster: perhaps with the same secret
		case err != nil:
			return messages.MachineEnrolled{}, err
		}
		return s.carry(ctx, e, again)
	}
	return messages.MachineEnrolled{}, messages.Contended
}

// carry leads a granted entry to its end, and takes a new one back that cannot be.
func (s *Sagas) carry(ctx context.Context, e Entry, again bool) (messages.MachineEnrolled, error) {
	e, err := s.finish(ctx, e)
	if err != nil {
		if !again && errors.Is(err, messages.FootprintRefused) {
			_, _ = s.undo(ctx, e) // what is left of that Settle does; the caller is told why it failed
		}
		return messages.MachineEnrolled{}, err
	}
	standing, err := s.Journal.Standing(ctx, e.Principal)
	switch {
	case err != nil:
		return messages.MachineEnrolled{}, err
	case !holds(standing, e.UID):
		return messages.MachineEnrolled{}, messages.EnrolmentPending.Because("it was revoked meanwhile")
	}
	return messages.MachineEnrolled{Grant: standing.Grant, Step: e.Step, Again: again}, nil
}

// holds reports whether the grant is live for an incarnation.
func holds(a messages.Authority, uid string) bool {
	return a.HasGrant && a.Grant.State == messages.GrantLive && a.Grant.UID == uid
}

// retry answers whoever asks about what is granted already: only with the secret and
// the rights of that, and only while its parents still cover it.
func (s *Sagas) retry(ctx context.Context, ask messages.EnrolMachine, standing messages.Authority) (Entry, error) {
	grant := standing.Grant
	switch {
	case grant.Kind != messages.Managed || grant.TokenHash != ask.TokenHash:
		return Entry{}, messages.GrantStands.Because("to another secret")
	case !alike(ask, grant):
		return Entry{}, messages.GrantStands.Because("to this secret, with other rights")
	}
	if err := grants.CheckChain(grant, standing.Chain); err != nil {
		return Entry{}, err
	}
	e, err := s.of(ctx, grant)
	switch {
	case err != nil:
		return Entry{}, err
	case e.Step == messages.ProvisionCompensating, e.Step == messages.ProvisionDone:
		return Entry{}, messages.EnrolmentPending
	case e.Kept || e.Step != messages.ProvisionGranted:
		return e, nil
	}
	e.Kept = true
	return s.write(ctx, e)
}

// of finds the entry of a grant that is live. One that was granted without it gets one.
func (s *Sagas) of(ctx context.Context, grant messages.Grant) (Entry, error) {
	keys, err := s.Journal.Keys(ctx, ledger.ProvisionKey(grant.Principal, grant.UID, "*"))
	if err != nil {
		return Entry{}, err
	}
	if len(keys) > 0 { // one: the secret may have been made anew since
		e, found, err := s.Journal.Read(ctx, keys[0])
		if err == nil && !found {
			err = messages.Unproved
		}
		return e, err
	}
	made, err := s.plan(grant.Principal, grant.UID, grant.TokenHash)
	if err != nil {
		return Entry{}, err
	}
	made.Step, made.Kept = messages.ProvisionGranted, true
	return s.write(ctx, Entry{Provision: made})
}

// begin plans and grants a new incarnation. What can be refused is refused before
// anything is written; the grant itself checks it again.
func (s *Sagas) begin(ctx context.Context, ask messages.EnrolMachine, standing messages.Authority) (Entry, error) {
	if standing.HasHead && standing.Head.State != messages.HeadRetired {
		return Entry{}, messages.IncarnationStanding
	}
	if err := s.covered(ctx, ask); err != nil {
		return Entry{}, err
	}
	made, err := s.plan(ask.Principal, names.NewUID(), ask.TokenHash)
	if err != nil {
		return Entry{}, err
	}
	e, err := s.write(ctx, Entry{Provision: made})
	if err != nil {
		return Entry{}, err
	}
	granted := e
	granted.Step, granted.At = messages.ProvisionGranted, s.Now()
	after, err := s.Journal.Grant(ctx, granted, ask)
	if err != nil && !errors.Is(err, ErrMoved) && !messages.Describe(err).Retryable {
		e.Step = messages.ProvisionDone
		_, _ = s.write(ctx, e) // or Settle does: nothing hangs on a plan
	}
	return after, err
}

// covered refuses what the parents do not cover now.
func (s *Sagas) covered(ctx context.Context, ask messages.EnrolMachine) error {
	child := messages.Grant{Principal: ask.Principal, Kind: messages.Managed, Allowance: ask.Allowance, Parent: ask.Parent}
	if ask.Parent.IsZero() {
		return nil
	}
	above, err := s.Journal.Standing(ctx, ask.Parent)
	if err != nil {
		return err
	}
	var chain []messages.Grant
	if above.HasGrant {
		chain = append([]messages.Grant{above.Grant}, above.Chain...)
	}
	return grants.CheckChain(child, chain)
}

func (s *Sagas) plan(p messages.Principal, uid, tokenHash string) (messages.Provision, error) {
	written := Render(s.Footprint, s.Space, p, uid)
	var found problems
	if found.twice(written); len(found) > 0 {
		return messages.Provision{}, messages.FootprintRefused.Because("%s %s", found[0].Key, found[0].Text)
	}
	return ledger.NewProvision(p, uid, tokenHash, written), nil
}

// alike reports whether a grant is what is asked for; the order and repetition of
// entries say nothing.
func alike(ask messages.EnrolMachine, grant messages.Grant) bool {
	a, g := ask.Allowance, grant.Allowance
	return ask.Parent == grant.Parent && a.Serve == g.Serve && grants.RoleOf(a) == grants.RoleOf(g) &&
		equal(a.Scope, g.Scope) && equal(a.Publish, g.Publish) && equal(a.Subscribe, g.Subscribe)
}

func equal(a, b []string) bool { return slices.Equal(set(a), set(b)) }

func set(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// Find tells what was enrolled with a secret last, for whoever lost the answer. It is
// refused with messages.EnrolmentNotFound when nothing is there of it any more.
func (s *Sagas) Find(ctx context.Context, tokenHash string) (messages.MachineEnrolled, error) {
	if err := ledger.CheckTokenHash(tokenHash); err != nil {
		return messages.MachineEnrolled{}, err
	}
	keys, err := s.Journal.Keys(ctx, ledger.ProvisionsOfSecret(tokenHash))
	if err != nil {
		return messages.MachineEnrolled{}, err
	}
	for _, key := range keys {
		e, found, err := s.Journal.Read(ctx, key)
		if err != nil {
			return messages.MachineEnrolled{}, err
		}
		if !found || e.Step == messages.ProvisionDone || e.Step == messages.ProvisionPlanned {
			continue
		}
		standing, err := s.Journal.Standing(ctx, e.Principal)
		if err != nil {
			return messages.MachineEnrolled{}, err
		}
		if holds(standing, e.UID) {
			return messages.MachineEnrolled{Grant: standing.Grant, Step: e.Step, Again: true}, nil
		}
	}
	return messages.MachineEnrolled{}, messages.EnrolmentNotFound
}

// write stamps an entry and writes it.
func (s *Sagas) write(ctx context.Context, e Entry) (Entry, error) {
	e.At = s.Now()
	return s.Journal.Write(ctx, e)
}

func keyOf(e Entry) string { return ledger.ProvisionKey(e.Principal, e.UID, e.TokenHash) }
