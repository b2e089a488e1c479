package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		all.checkGate(head, complain)
	}
	for _, grant := range all.grants {
		if reservation, taken := all.uids[grant.UID]; taken && reservation.Principal != grant.Principal {
			continue // a burnt name: refused at the exchange, and only there
		} else if head := all.heads[grant.Principal]; taken && head.UID != grant.UID {
			complain("%s: its incarnation is reserved, and its head names another", grant.Principal)
		}
		if _, ended := all.frontiers[grant.UID]; ended && grant.State == messages.GrantLive {
			complain("%s: its grant is live for an incarnation that was retired", grant.Principal)
		}
	}
	for uid, reservation := range all.uids {
		if _, found := all.heads[reservation.Principal]; !found {
			complain("%s is reserved for %s, which has no head", uid, reservation.Principal)
		}
	}
	all.checkOperations(complain)
	all.checkDescent(complain)
	return errors.Join(broken...)
}

// everything is the ledger as the invariants see it.
type everything struct {
	heads       map[messages.Principal]messages.Head
	grants      map[messages.Principal]messages.Grant
	uids        map[string]Reservation
	roots       map[string]messages.Principal
	operations  map[string]messages.Operation
	frontiers   map[string]Frontier
	credentials map[string]Credential // by key
	active      map[string][]string   // keys of those that are, by uid
	lineage     map[string]Lineage    // by key
	sources     map[Handle]SourceGate
	sessions    map[string]Session
	served      map[string]InstanceCredential // by key
	asked       map[string]bool               // uids, whoever asks
	owed        []string
}

func readAll(ctx context.Context, source Source) (*everything, error) {
	keys, err := source.List(ctx, allRows)
	if err != nil {
		return nil, err
	}
	all := &everything{heads: map[messages.Principal]messages.Head{}, grants: map[messages.Principal]messages.Grant{},
		uids: map[string]Reservation{}, roots: map[string]messages.Principal{}, operations: map[string]messages.Operation{},
		frontiers: map[string]Frontier{}, credentials: map[string]Credential{}, active: map[string][]string{}, lineage: map[string]Lineage{},
		sources: map[Handle]SourceGate{}, sessions: map[string]Session{}, served: map[string]InstanceCredential{},
		asked: map[string]bool{}}
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
	switch family {
	case familyHead:
		return keep(row, DecodeHead, func(h messages.Head) { all.heads[h.Principal] = h })
	case familyGrant:
		return keep(row, DecodeGrant, func(g messages.Grant) { all.grants[g.Principal] = g })
	case familyUID:
		return keep(row, DecodeReservation, func(r Reservation) { all.uids[r.UID] = r })
	case familyOperation:
		return keep(row, DecodeOperation, func(o messages.Operation) { all.operations[o.ID] = o })
	case familyFrontier:
		return keep(row, DecodeFrontier, func(f Frontier) { all.frontiers[f.UID] = f })
	case familyCredential:
		return keep(row, DecodeCredential, func(c Credential) {
			all.credentials[row.Key] = c
			if c.State == CredentialActive {
				all.active[c.UID] = append(all.active[c.UID], row.Key)
			}
		})
	case familyLineage:
		return keep(row, DecodeLineage, func(l Lineage) { all.lineage[row.Key] = l })
	case familySource:
		return keep(row, DecodeSource, func(g SourceGate) { all.sources[g.Handle] = g })
	case familySession:
		return keep(row, DecodeSession, func(s Session) { all.sessions[s.ID] = s })
	case familyController:
		return keep(row, DecodeController, func(Controller) {})
	case familyInstance:
		return keep(row, DecodeInstance, func(messages.Instance) {})
	case familyInstanceCredential:
		return keep(row, DecodeInstanceCredential, func(c InstanceCredential) { all.served[row.Key] = c })
	case familyAsked:
		return keep(row, DecodeAsked, func(a Asking) {
			for _, uid := range a.UIDs {
				all.asked[uid] = true
			}
		})
	case OwedKey:
		return keep(row, DecodeOwed, func(o messages.Owed) { all.owed = o.Ops })
	case RosterKey:
		return keep(row, DecodeRoster, func([]string) {})
	}
	return nil
}

func keep[V any](row Row, decode func(Row) (V, error), with func(V)) error {
	value, err := decode(row)
	if err == nil {
		with(value)
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
	case grant.State != messages.GrantLive && head.State != messages.HeadRetiring && !all.asked[head.UID]:
		complain("%s: its grant is revoked, and nobody ends its incarnation", p)
	}
	if head.Root.ID == "" {
		return
	}
	if other, shared := all.roots[head.Root.ID]; shared {
		complain("%s: it shares its root with %s", p, other)
	}
	all.roots[head.Root.ID] = p
}

// checkGate holds a head against the operations that may have written it.
func (all *everything) checkGate(head messages.Head, complain func(string, ...any)) {
	p := head.Principal
	_, ended := all.frontiers[head.UID]
	switch head.State {
	case messages.HeadRetired:
		if !ended {
			complain("%s: its incarnation has ended, and nobody recorded where", p)
		}
	case messages.HeadFrozen, messages.HeadRetiring:
		op, found := all.operations[head.Operation.ID]
		if !found || over(op.Step) || op.UID != head.UID || op.Principal != p || refOf(op) != head.Operation {
			complain("%s: no operation holds its gate, which is shut", p)
		}
	}
	if ended && head.State != messages.HeadRetired {
		complain("%s: its incarnation was retired, and is %s", p, head.State)
	}
}

func (all *everything) checkOperations(complain func(string, ...any)) {
	for _, id := range all.owed {
		if op, found := all.operations[id]; !found || over(op.Step) {
			complain("operation %s is owed, and is %q", id, op.Step)
		}
	}
	superseders := map[string]bool{} // incarnations that have a retirement
	for _, op := range all.operations {
		superseders[op.UID] = superseders[op.UID] || op.Kind == messages.Retirement
	}
	for id, op := range all.operations {
		if over(op.Step) == slices.Contains(all.owed, id) {
			complain("operation %s is %s, and whether it is owed says otherwise", id, op.Step)
		}
		if reservation := all.uids[op.UID]; reservation.Principal != op.Principal {
			complain("operation %s is about an incarnation of another", id)
		}
		all.checkOperation(op, complain)
		if op.Step == messages.StepSuperseded && !superseders[op.UID] {
			complain("operation %s was superseded by none", id)
		}
	}
	for uid, frontier := range all.frontiers {
		op := all.operations[frontier.Operation]
		if op.Kind != messages.Retirement || op.Step != messages.StepDone || op.UID != uid || !equalFrontiers(op.Outcome.Frontiers, frontier.Streams) {
			complain("%s: no retirement recorded where it ended", uid)
		}
	}
}

func (all *everything) checkOperation(op messages.Operation, complain func(string, ...any)) {
	head := all.heads[op.Principal]
	if !over(op.Step) && (head.UID != op.UID || head.Operation != refOf(op)) {
		complain("operation %s is not over, and does not hold the gate", op.ID)
	}
	if op.Kind == messages.Retirement && op.ID != OperationOf(op.UID) {
		complain("operation %s is not the retirement of its incarnation", op.ID)
	}
	if op.Kind == messages.Retirement && op.Step == messages.StepDone && all.frontiers[op.UID].Operation != op.ID {
		complain("operation %s is done, and nobody recorded where", op.ID)
	}
	if op.Kind == messages.Takeover && op.Step == messages.StepDone && head.UID == op.UID && head.Epoch < op.Outcome.Epoch {
		complain("operation %s began epoch %d, and it is %d", op.ID, op.Outcome.Epoch, head.Epoch)
	}
	// The gate is shut from the step on at which all were revoked.
	shut := op.Step != messages.StepBegun && !over(op.Step) || op.Kind == messages.Retirement && op.Step == messages.StepDone
	if active := all.active[op.UID]; shut && len(active) > 0 {
		complain("%v are active after operation %s revoked all", active, op.ID)
	}
}

func equalFrontiers(a, b map[string]uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for name, last := range a {
		if other, found := b[name]; !found || other != last {
			return false
		}
	}
	return true
}

// checkDescent holds what was derived against what it was derived from.
func (all *everything) checkDescent(complain func(string, ...any)) {
	for key, c := range all.credentials {
		if reservation := all.uids[c.UID]; reservation.Principal != c.Holder {
			complain("%s: its holder never lived under that name", key)
		}
		for _, h := range HandlesOf(c.Chain) {
			if _, found := all.lineage[LineageKey(h, c.UID, c.ID)]; !found {
				complain("%s: its lineage of %s is not recorded", key, h)
			}
			if _, found := all.sources[h]; !found {
				complain("%s: %s has no gate", key, h)
			}
		}
		for _, id := range SessionsOf(c.Chain) {
			if s, found := all.sessions[id]; !found || s.UID != c.UID || s.CallerCredential() != c.ID {
				complain("%s: it is of no session", key)
			}
		}
	}
	for key, l := range all.lineage {
		if c, found := all.credentials[CredentialKey(l.UID, l.CredentialID)]; !found || !slices.Contains(HandlesOf(c.Chain), l.Handle) {
			complain("%s: no credential is of that lineage", key)
		}
	}
	for id, s := range all.sessions {
		caller, called := all.credentials[CredentialKey(s.UID, s.CallerCredential())]
		server, served := all.served[InstanceCredentialKey(s.Endpoint, s.Instance, s.ServerCredential())]
		if !called || !served || caller.Holder != s.Caller || server.Holder != s.Server || server.Epoch != s.Epoch {
			complain("session %s is without one of its halves", id)
		}
		if op, found := all.operations[OperationOf(s.UID)]; found && op.Step == messages.StepDone && server.State == CredentialActive {
			complain("session %s: the server's half outlives the caller", id)
		}
	}
}
