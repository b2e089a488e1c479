package footprint

import (
	"context"
	"errors"
	"fmt"

	"github.com/cotal-ai/authplane/messages"
)

// Settle brings one entry to where it belongs: what was interrupted is finished, or
// undone where its grant is gone or it cannot be made; and what has ended is removed.
// What somebody of this process is at is EnrolmentPending. final says that the entry is
// over for ever. An error leaves it for the next time.
//
// That a footprint is removed only now, after the revocation and the retirement, keeps
// both from ever waiting for it: deny-new is durable before anybody comes here, and what
// to remove stands in the entry, whatever has become of the grant.
func (s *Sagas) Settle(ctx context.Context, key string) (final bool, err error) {
	e, found, err := s.Journal.Read(ctx, key)
	if err == nil && !found {
		err = messages.Unproved
	}
	if err != nil {
		return false, fmt.Errorf("settle %s: %w", key, err)
	}
	leave, free := s.turns.try(e.Principal)
	if !free {
		return false, messages.EnrolmentPending.Because("somebody is at it")
	}
	defer leave()
	// Somebody of this process may have been at it until now.
	if e, err = s.again(ctx, e); err == nil {
		e, err = s.settle(ctx, e)
	}
	if err != nil {
		return false, fmt.Errorf("settle the footprint of %s: %w", e.Principal, err)
	}
	return e.Step == messages.ProvisionDone, nil
}

func (s *Sagas) settle(ctx context.Context, e Entry) (Entry, error) {
	switch e.Step {
	case messages.ProvisionDone:
		return e, nil
	case messages.ProvisionPlanned:
		return s.forget(ctx, e)
	case messages.ProvisionCompensating:
		return s.remove(ctx, e)
	}
	standing, err := s.Journal.Standing(ctx, e.Principal)
	switch {
	case err != nil:
		return e, err
	case !holds(standing, e.UID):
		if e.Step == messages.ProvisionReady && !over(standing, e.UID) {
			return e, nil // it is being retired, and looked at again then
		}
		return s.remove(ctx, e)
	case e.Step == messages.ProvisionReady:
		return e, nil
	}
	e, err = s.finish(ctx, e)
	if errors.Is(err, messages.FootprintRefused) && !e.Kept {
		undone, failed := s.undo(ctx, e)
		if failed == nil {
			return undone, nil
		}
		err = errors.Join(err, failed)
	}
	return e, err
}

// forget ends a plan that nobody can be granting any more. Nothing hangs on when: if
// somebody is, one of the two finds that the entry has moved.
func (s *Sagas) forget(ctx context.Context, e Entry) (Entry, error) {
	if s.Now().Before(e.At.Add(s.Lives + slack)) {
		return e, nil
	}
	e.Step = messages.ProvisionDone
	return s.write(ctx, e)
}
