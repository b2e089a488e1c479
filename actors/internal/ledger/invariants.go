package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// CheckInvariants reads every row and reports all that cannot be, whatever was
// interrupted when. It takes no snapshot: run it where nobody writes. It is for
// tests and for the operator's doctor; nothing decides by it.
func CheckInvariants(ctx context.Context, source Source) error {
	all, err := readAll(ctx, source)
	if err != nil {
		return err
	}
	var broken []error
	complain := func(format string, args ...any) { broken = append(broken, fmt.Errorf(format, args...)) }
	for _, head := range all.heads {
		all.checkHead(head, complain)
	}
	for _, grant := range all.grants {
		if reservation, taken := all.uids[grant.UID]; taken && reservation.Principal != grant.Principal {
			continue // a burnt name: refused at the exchange, and only there
		} else if head := all.heads[grant.Principal]; taken && head.UID != grant.UID {
			complain("%s: its incarnation is reserved, and its head names another", grant.Principal)
		}
	}
	for uid, reservation := range all.uids {
		if _, found := all.heads[reservation.Principal]; !found {
			complain("%s is reserved for %s, which has no head", uid, reservation.Principal)
		}
	}
	return errors.Join(broken...)
}

// everything is the ledger as the invariants see it.
type everything struct {
	heads  map[messages.Principal]messages.Head
	grants map[messages.Principal]messages.Grant
	uids   map[string]Reservation
	roots  map[string]messages.Principal
}

func readAll(ctx context.Context, source Source) (*everything, error) {
	keys, err := source.List(ctx, allRows)
	if err != nil {
		return nil, err
	}
	all := &everything{heads: map[messages.Principal]messages.Head{}, grants: map[messages.Principal]messages.Grant{},
		uids: map[string]Reservation{}, roots: map[string]messages.Principal{}}
	for _, key := range keys {
		row, err := mustGet(ctx, source, key)
		if err != nil {
			return nil, err
		}
		if err := all.add(row); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add reads one row into its family. A family the invariants do not speak of is
// let pass.
func (all *everything) add(row Row) error {
	family, _, _ := strings.Cut(row.Key, ".")
	var err error
	switch family {
	case familyHead:
		var head messages.Head
		head, err = DecodeHead(row)
		all.heads[head.Principal] = head
	case familyGrant:
		var grant messages.Grant
		grant, err = DecodeGrant(row)
		all.grants[grant.Principal] = grant
	case familyUID:
		var reservation Reservation
		reservation, err = DecodeReservation(row)
		all.uids[reservation.UID] = reservation
	}
	return err
}

func (all *everything) checkHead(head messages.Head, complain func(string, ...any)) {
	p := head.Principal
	if reservation, found := all.uids[head.UID]; !found || reservation.Principal != p {
		complain("%s: its incarnation is not reserved for it", p)
	}
	grant, granted := all.grants[p]
	switch {
	case !granted:
		complain("%s: it has a head and no grant", p)
	case head.State == messages.HeadRetired:
		if grant.UID == head.UID && grant.State == messages.GrantLive {
			complain("%s: its incarnation has ended, and its grant is live", p)
		}
	case grant.UID != head.UID:
		complain("%s: its incarnation stands beside a grant for another", p)
	case grant.State != messages.GrantLive && head.State != messages.HeadRetiring:
		complain("%s: its grant is revoked, and its incarnation stands", p)
	}
	if head.Root.ID == "" {
		return
	}
	if other, shared := all.roots[head.Root.ID]; shared {
		complain("%s: it shares its root with %s", p, other)
	}
	all.roots[head.Root.ID] = p
}
