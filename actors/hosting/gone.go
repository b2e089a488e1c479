package hosting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// goneAfter is when a registration is over that this process knew of by then,
	// whatever the servers say: its connection is for a minute and never comes back. The
	// rest is for clocks that differ.
	goneAfter = 90 * time.Second
	// answerWithin is how long the observer and the like are waited for.
	answerWithin = 10 * time.Second
	// learnWithin is how long a write of the roster is waited for.
	learnWithin = 20 * time.Second
)

// work is one registration or repair.
type work struct {
	hosts              *Hosts
	at                 operations.Site
	endpoint, instance string
}

// gone proves that whoever froze a gate can act no more: no server lists the
// connection over which that was done, or its time has run out.
func (w *work) gone(store *ledger.Store) ledger.Gone {
	return func(ctx context.Context, frozen messages.Instance) error {
		known := time.Since(w.hosts.seen.since("registration " + frozen.Operation.ID))
		roster, err := ledger.Roster(ctx, store)
		if err != nil {
			return err
		}
		swept, err := servers{w}.Sweep(ctx, messages.SweepConnections{Account: string(trust.CTRL), Known: roster})
		for _, conn := range swept.Connections {
			if ledger.FrozenBy(frozen, conn.User) {
				return messages.RegistrationAlive.Because("%s is connected to server %s", conn.Label, conn.ServerName)
			}
		}
		switch {
		case err == nil && len(swept.Doubts) == 0, known >= goneAfter:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		why := strings.Join(swept.Doubts, "; ")
		if err != nil {
			why = messages.PublicText(err)
		}
		return messages.RegistrationUnknown.Because("%s; in %s it is over by itself", why, (goneAfter - known).Round(time.Second))
	}
}

// evict proves that none of the holders is connected any more.
func (w *work) evict(store *ledger.Store) ledger.Evict {
	return func(ctx context.Context, holders []messages.Principal) error {
		// Services of the infrastructure are no principals, and none is connected as one.
		people := slices.DeleteFunc(slices.Clone(holders), func(p messages.Principal) bool { return p.Owner == names.LocalOwner })
		if len(people) == 0 {
			return nil
		}
		order := evict.Ask{Operation: names.NewUID(), Callouts: w.hosts.config.CalloutUsers}
		for _, p := range people {
			order.Targets = append(order.Targets, messages.Target{Principal: p})
		}
		err := w.clear(ctx, store, order)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("evict: %w", context.Cause(ctx))
		default:
			return messages.InstanceHeld.Because("%s", messages.PublicText(err))
		}
	}
}

func (w *work) clear(ctx context.Context, store *ledger.Store, order evict.Ask) (err error) {
	if w.hosts.config.Outlives > 0 {
		return w.outlast(ctx, store, order)
	}
	_, err = w.sweep(ctx, store, order)
	return err
}

// sweep evicts where the servers can be asked, and has those that it met remembered.
func (w *work) sweep(ctx context.Context, store *ledger.Store, order evict.Ask) (outcome evict.Outcome, err error) {
	if order.Known, err = ledger.Roster(ctx, store); err != nil {
		return outcome, err
	}
	outcome, err = evict.Run(ctx, evict.Ports{Servers: servers{w}, Responders: responders{w}}, order, nil)
	if len(outcome.Learnt) > 0 {
		_, learnt := ask[messages.KnownServers](ctx, learnWithin, w.ref(w.hosts.config.Writer), messages.LearnServers{Names: outcome.Learnt})
		if err == nil {
			err = learnt
		}
	}
	return outcome, err
}

// outlast waits, where nobody can be asked, until every connection has run out that was
// there when the gate was frozen. The gate stays frozen in its generation, whoever
// registers meanwhile, so that a later call need not begin anew; one that would wait
// for too long is told until when.
func (w *work) outlast(ctx context.Context, store *ledger.Store, order evict.Ask) error {
	gate, err := ledger.NewReader(store, nil).Instance(ctx, messages.ReadInstance{Endpoint: w.endpoint, Instance: w.instance})
	if err != nil {
		return err
	}
	longest := w.hosts.config.Outlives
	since := w.hosts.seen.since(fmt.Sprintf("gate %s.%s.%d", w.endpoint, w.instance, gate.Generation))
	order.Frozen, order.Expires = since, since.Add(evict.Outlived(longest))
	if deadline, _ := ctx.Deadline(); since.Add(evict.Proved(longest)).After(deadline.Add(-time.Second)) {
		return messages.EvictionUnproved.Because("the longest permission runs out at %s", order.Expires.UTC().Format(time.RFC3339))
	}
	_, err = evict.Run(ctx, evict.Ports{Servers: servers{w}}, order, nil)
	return err
}

func (w *work) ref(path string) supervisor.Ref { return w.at.Ref(path) }

// ask asks an actor, for no longer than within.
func ask[T any](ctx context.Context, within time.Duration, to supervisor.Ref, m any) (T, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answer, err := client.Ask[T](limited, to, m)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = messages.ActorAway.From(err)
	}
	return answer, err
}

// servers asks the observer and the evictor.
type servers struct{ w *work }

// Observe and the rest are evict.Servers.
func (s servers) Observe(ctx context.Context, known []string) (messages.Roster, error) {
	return ask[messages.Roster](ctx, answerWithin, s.w.ref(s.w.hosts.config.Observer), messages.ObserveServers{Known: known})
}

func (s servers) Sweep(ctx context.Context, m messages.SweepConnections) (messages.Swept, error) {
	return ask[messages.Swept](ctx, answerWithin, s.w.ref(s.w.hosts.config.Observer), m)
}

func (s servers) Kick(ctx context.Context, connections []messages.ConnectionRef) ([]messages.KickResult, error) {
	answer, err := ask[messages.Kicked](ctx, answerWithin, s.w.ref(s.w.hosts.config.Evictor), messages.KickConnections{Connections: connections})
	return answer.Results, err
}

// responders asks presence, which has every process of the space settle.
type responders struct{ w *work }

// Settle is evict.Responders.
func (r responders) Settle(ctx context.Context, m messages.SettleResponders) (messages.Settled, error) {
	return ask[messages.Settled](ctx, answerWithin, r.w.ref(r.w.hosts.config.Presence), m)
}
