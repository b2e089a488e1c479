// Package maintenance mends what a controller, or its host, cannot mend by itself: it
// ends the connections of those whom an instance's credentials were issued to, and
// reconciles a registration that died.
//
// Each is a call with an actor and a connection of its own, for a minute; see package
// operations. The connection is flushed and closed in every outcome, or cut where that
// fails.
package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/hosting"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// tolerance is how long after its end a credential may still let somebody in: servers
// have clocks of their own, and count in whole seconds.
const tolerance = 5 * time.Second

// Maintenance is that of one space, over all lives of the calls.
type Maintenance struct {
	calls *operations.Calls
	hosts *hosting.Hosts
}

// New takes who knows how to evict and to reconcile.
func New(hosts *hosting.Hosts) *Maintenance {
	return &Maintenance{calls: hosts.Calls(), hosts: hosts}
}

// CheckEviction refuses what no eviction can be about: with messages.Malformed.
func CheckEviction(ask messages.EvictFamily) error {
	if err := ledger.CheckInstance(ask.Endpoint, ask.Instance); err != nil {
		return err
	}
	if len(ask.Principals) == 0 || len(ask.Principals) > messages.MaxEvictFamily {
		return messages.Malformed.Because("an eviction is about 1 to %d principals", messages.MaxEvictFamily)
	}
	met := map[messages.Principal]bool{}
	for _, p := range ask.Principals {
		if err := names.CheckPrincipal(p); err != nil {
			return err
		}
		if met[p] {
			return messages.Malformed.Because("%s stands twice", p)
		}
		met[p] = true
	}
	return nil
}

// Evict ends the connections of some of an instance's family, all in one go, and says of
// each what is proved: that nobody was connected as the principal at some moment since,
// and that no credential is left which cannot be taken back. Nobody is kept from coming
// back by it who still may.
//
// Refused, with nobody evicted, with messages.Malformed, InstanceNotFound,
// FamilyOutsider for whoever never held anything of the instance, and SystemAbsent where
// nobody can be dropped. It may also fail as operations.Perform does.
func (m *Maintenance) Evict(ctx context.Context, tree *supervisor.Tree, ask messages.EvictFamily) (messages.FamilyEvicted, error) {
	if err := CheckEviction(ask); err != nil {
		return messages.FamilyEvicted{}, err
	}
	return operations.Perform[messages.FamilyEvicted](ctx, m.calls, tree, operations.Job{
		Kind: "eviction", On: ask.Instance + " at " + ask.Endpoint,
		Role:  broker.Maintenance(ask.Endpoint, ask.Instance),
		Prove: m.calls.Proved(ask.Instance),
		Ask:   ask,
		Do: func(ctx context.Context, at operations.Site) (any, error) {
			return m.evict(ctx, at, ask)
		},
	})
}

// Reconcile opens a gate that a registration left frozen; see hosting.Hosts.Repair.
func (m *Maintenance) Reconcile(ctx context.Context, tree *supervisor.Tree, ask messages.ReconcileInstance) (messages.InstanceRegistered, error) {
	return m.hosts.Repair(ctx, tree, ask)
}

func (m *Maintenance) evict(ctx context.Context, at operations.Site, ask messages.EvictFamily) (messages.FamilyEvicted, error) {
	store := m.calls.Store(at, ask.Instance)
	if err := store.Sync(ctx); err != nil {
		return messages.FamilyEvicted{}, err
	}
	if _, err := ledger.NewReader(store, nil).Instance(ctx, messages.ReadInstance{Endpoint: ask.Endpoint, Instance: ask.Instance}); err != nil {
		return messages.FamilyEvicted{}, err
	}
	family, err := ledger.Family(ctx, store, ask.Endpoint, ask.Instance)
	if err != nil {
		return messages.FamilyEvicted{}, err
	}
	if err := checkFamily(family, ask.Principals); err != nil {
		return messages.FamilyEvicted{}, err
	}
	targets := make([]messages.Target, len(ask.Principals))
	for i, p := range ask.Principals {
		targets[i] = messages.Target{Principal: p}
	}
	outcome, err := m.hosts.Evict(ctx, at, store, targets)
	var unproved *evict.Unproved
	if err != nil && !errors.As(err, &unproved) {
		return messages.FamilyEvicted{}, err
	}
	return messages.FamilyEvicted{Verdicts: verdicts(outcome, err, targets, family, time.Now())}, nil
}

// checkFamily refuses those who hold nothing of the instance, by name.
func checkFamily(family []ledger.InstanceCredential, people []messages.Principal) error {
	var outsiders []string
	for _, p := range people {
		if !slices.ContainsFunc(family, func(c ledger.InstanceCredential) bool { return c.Holder == p }) {
			outsiders = append(outsiders, p.String())
		}
	}
	if len(outsiders) > 0 {
		return messages.FamilyOutsider.Because("%s", strings.Join(outsiders, ", "))
	}
	return nil
}

// verdicts says of each target what came of it. An eviction that is not proved proves
// nothing of anybody.
func verdicts(outcome evict.Outcome, err error, targets []messages.Target, family []ledger.InstanceCredential, now time.Time) []messages.EvictionVerdict {
	all := make([]messages.EvictionVerdict, len(targets))
	for i, target := range targets {
		v := messages.EvictionVerdict{Principal: target.Principal, Evicted: outcome.Of(target).Evicted, Until: heldUntil(family, target.Principal, now)}
		switch {
		case err != nil:
			v.Note = messages.PublicText(err)
		case !v.Until.IsZero():
			v.Note = fmt.Sprintf("holds credentials of its own until %s", v.Until.Format(time.RFC3339))
		default:
			v.Gone = true
		}
		all[i] = v
	}
	return all
}

// heldUntil is when the last of a holder's credentials runs out that servers believe
// without asking anybody, whether it was revoked or not.
func heldUntil(family []ledger.InstanceCredential, holder messages.Principal, now time.Time) (until time.Time) {
	for _, c := range family {
		ends := c.Expires.Add(tolerance)
		if c.Holder == holder && controller.IsCredential(c.ID) && ends.After(now) && ends.After(until) {
			until = ends
		}
	}
	return until
}
