package footprint

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// slack is what the clocks of the servers and of other processes may differ by.
const slack = 30 * time.Second

// finish leads an entry to ready, whoever else is at it. What it fails with may have
// left it at any step; the entry it returns is as it was met last.
func (s *Sagas) finish(ctx context.Context, e Entry) (Entry, error) {
	moved := 0
	for range tries {
		var next Entry
		var err error
		switch e.Step {
		case messages.ProvisionReady:
			return e, nil
		case messages.ProvisionGranted:
			next, err = s.provision(ctx, e)
		case messages.ProvisionProvisioned:
			next = e
			next.Step = messages.ProvisionReady
			next, err = s.write(ctx, next)
		default:
			return e, messages.EnrolmentPending
		}
		if errors.Is(err, ErrMoved) {
			moved++
			if err := pause(ctx, moved); err != nil {
				return e, err
			}
			next, err = s.again(ctx, e)
		}
		if err != nil {
			return next, err
		}
		e = next
	}
	return e, messages.Contended
}

// again reads an entry anew.
func (s *Sagas) again(ctx context.Context, e Entry) (Entry, error) {
	next, found, err := s.Journal.Read(ctx, keyOf(e))
	if err == nil && !found {
		err = messages.Unproved
	}
	if err != nil {
		return e, err
	}
	return next, nil
}

// provision makes what is not there of a footprint, and says in the journal that all is.
func (s *Sagas) provision(ctx context.Context, e Entry) (Entry, error) {
	if e.Footprint.Empty() {
		e.Step = messages.ProvisionProvisioned
		return s.write(ctx, e)
	}
	making := &making{Sagas: s, e: e, me: names.NewUID()}
	ended, err := s.Sites.Provision(ctx, e.Provision, making.run)
	if ended {
		s.ended.note(making.me)
	}
	e = making.e
	if errors.Is(err, ErrMoved) {
		return e, err
	}
	e.Drivers = s.acting(e.Drivers)
	if err == nil {
		// What was made is known to be; from here on it is ours whoever writes over it.
		e = fork(e)
		for _, p := range partsOf(&e, nil) {
			if *p.owned == messages.OwnershipOurs {
				*p.owned = messages.OwnershipMade
			}
		}
		e.Step = messages.ProvisionProvisioned
		return s.write(ctx, e)
	}
	return making.e, err
}

// making is one try to make a footprint, over one connection.
type making struct {
	*Sagas
	e  Entry
	me string
}

// run writes down whose each part is before it makes any. From that write on this
// connection counts as one that may still make parts until its time is over.
func (m *making) run(ctx context.Context, site Site) error {
	next, err := m.look(ctx, site)
	if err != nil {
		return err
	}
	next.Drivers = append(m.acting(next.Drivers), messages.ProvisionDriver{ID: m.me, Until: m.Now().Add(m.Lives + slack)})
	if m.e, err = m.keep(ctx, next); err != nil {
		return err
	}
	for i, p := range partsOf(&m.e, site) {
		if *p.owned != messages.OwnershipOurs {
			continue
		}
		if err := p.make(ctx); errors.Is(err, ErrOther) {
			err = m.others(ctx, site, i)
			if err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// keep writes; an entry that moved stays as it was read.
func (m *making) keep(ctx context.Context, next Entry) (Entry, error) {
	written, err := m.write(ctx, next)
	if err != nil {
		return m.e, err
	}
	return written, nil
}

// look finds out whose the parts are of which that is open.
func (m *making) look(ctx context.Context, site Site) (Entry, error) {
	next := fork(m.e)
	for _, p := range partsOf(&next, site) {
		if *p.owned != messages.OwnershipOpen {
			continue
		}
		there, err := p.look(ctx)
		if err == nil {
			*p.owned, err = owned(there, p.name)
		}
		if err != nil {
			return next, err
		}
	}
	return next, nil
}

func owned(there Presence, name string) (messages.Ownership, error) {
	switch there {
	case Absent, Ours:
		return messages.OwnershipOurs, nil
	case Alike:
		return messages.OwnershipFound, nil
	}
	return messages.OwnershipOpen, messages.FootprintRefused.Because("something else stands as %s", name)
}

// others puts the journal right where somebody else came between the look at a part and
// its making: it is not ours to undo.
func (m *making) others(ctx context.Context, site Site, part int) error {
	next := fork(m.e)
	p := partsOf(&next, site)[part]
	there, err := p.look(ctx)
	if err != nil {
		return err
	}
	*p.owned = messages.OwnershipFound
	if m.e, err = m.keep(ctx, next); err != nil {
		return err
	}
	if there != Alike {
		return messages.FootprintRefused.Because("something else stands as %s", p.name)
	}
	return nil
}

// acting leaves out the drivers who can make nothing any more: their time is over, or
// this process has seen their connection end.
func (s *Sagas) acting(drivers []messages.ProvisionDriver) []messages.ProvisionDriver {
	now := s.Now()
	return slices.DeleteFunc(slices.Clone(drivers), func(d messages.ProvisionDriver) bool { return !now.Before(d.Until) || s.ended.has(d.ID) })
}

// maxEnded bounds who is remembered. Whoever is forgotten is over when his time is.
const maxEnded = 1024

// ended are drivers of this process whose connections have ended. The zero value is ready.
type ended struct {
	mu    sync.Mutex
	order []string
}

func (e *ended) note(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.order = append(e.order, id)
	if len(e.order) > maxEnded {
		e.order = e.order[1:]
	}
}

func (e *ended) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.order, id)
}
