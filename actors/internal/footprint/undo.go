package footprint

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// undo takes back an enrolment that failed: its grant, and what was made. It stops where
// somebody else has brought it to its end meanwhile, or has asked for it again.
func (s *Sagas) undo(ctx context.Context, e Entry) (Entry, error) {
	return s.back(ctx, e, func(e Entry) bool { return !e.Kept && e.Step == messages.ProvisionGranted })
}

// remove unmakes the footprint of an incarnation that is granted no more.
func (s *Sagas) remove(ctx context.Context, e Entry) (Entry, error) {
	return s.back(ctx, e, func(Entry) bool { return true })
}

// back leads an entry to done. Unless that has begun, it is begun only if it is wanted.
func (s *Sagas) back(ctx context.Context, e Entry, wanted func(Entry) bool) (Entry, error) {
	moved := 0
	for range tries {
		var next Entry
		var err error
		switch {
		case e.Step == messages.ProvisionDone:
			return e, nil
		case e.Step == messages.ProvisionCompensating:
			next, err = s.compensate(ctx, e)
		case wanted(e):
			next = e
			next.Step = messages.ProvisionCompensating
			next, err = s.write(ctx, next)
		default:
			return e, nil
		}
		if errors.Is(err, ErrMoved) {
			moved++
			if err := pause(ctx, moved); err != nil {
				return e, err
			}
			next, err = s.again(ctx, e)
		}
		if err != nil {
			return e, err
		}
		e = next
	}
	return e, messages.Contended
}

// compensate denies the incarnation, awaits its end, and removes what was made for it.
// Nothing is removed from under somebody who may still be connected, nor while anybody
// may still be making parts: what is removed then stays so.
func (s *Sagas) compensate(ctx context.Context, e Entry) (Entry, error) {
	if err := s.Journal.End(ctx, e.Principal, e.UID); err != nil {
		return e, err
	}
	standing, err := s.Journal.Standing(ctx, e.Principal)
	switch {
	case err != nil:
		return e, err
	case holds(standing, e.UID):
		return e, messages.Unproved.Because("its grant was revoked, and reads as live")
	case !over(standing, e.UID):
		return e, messages.EnrolmentPending.Because("the incarnation has not ended")
	}
	if busy := s.acting(e.Drivers); len(busy) > 0 {
		return e, messages.EnrolmentPending.Because("whoever was making it may go on until %s", busy[len(busy)-1].Until.UTC().Format(time.RFC3339))
	}
	if anyOurs(e) {
		if _, err := s.Sites.Deprovision(ctx, e.Provision, func(ctx context.Context, site Site) error { return removeAll(ctx, e, site) }); err != nil {
			return e, err
		}
	}
	e.Step, e.Drivers = messages.ProvisionDone, nil
	return s.write(ctx, e)
}

// removeAll removes every part that is ours. One that cannot be removed keeps no other
// from it.
func removeAll(ctx context.Context, e Entry, site Site) error {
	var failures []error
	for _, p := range partsOf(&e, site) {
		if p.ours() {
			failures = append(failures, p.remove(ctx, *p.owned == messages.OwnershipMade))
		}
	}
	return errors.Join(failures...)
}

// over reports whether nothing of an incarnation can be connected any more.
func over(a messages.Authority, uid string) bool {
	return !a.HasHead || a.Head.UID != uid || a.Head.State == messages.HeadRetired
}
