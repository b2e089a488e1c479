package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// revokeAtOnce bounds the rows of one batch that revokes a family.
const revokeAtOnce = 200

// Evict makes sure that no connection of the holders lives on any server, and
// returns nil only when that is proved. What it fails with goes to the caller of the
// registration. It is called with the gate frozen and every credential revoked, and
// only if there is anybody to evict.
type Evict func(ctx context.Context, holders []messages.Principal) error

// Gone makes sure that whoever froze the gate can act no more, and returns nil only
// when that is proved.
type Gone func(ctx context.Context, frozen messages.Instance) error

// Registrar makes the transitions of service instances: which process of an
// instance is the one that counts. It is safe for concurrent use, also by several
// processes.
//
// Besides the refusals each method names, every one may fail with
// messages.Malformed, Contended, BrokerAway, RowCorrupt, OutcomeUnknown and with
// what evict fails with. Whatever it fails with, another registration of the same
// instance goes on from there.
type Registrar struct {
	store *Store
	evict Evict
	newID func() string
	// user is whose connection freezes a gate; empty for nobody's.
	user string
	// whole has a registration evict the instance's principal too.
	whole bool
}

// NewRegistrar writes to store. A nil evict refuses with messages.InstanceHeld; a
// nil newID is names.NewUID.
func NewRegistrar(store *Store, evict Evict, newID func() string) *Registrar {
	if evict == nil {
		evict = func(context.Context, []messages.Principal) error { return messages.InstanceHeld }
	}
	if newID == nil {
		newID = names.NewUID
	}
	return &Registrar{store: store, evict: evict, newID: newID}
}

// Over is r for registrations that are made over the connection of a user, which is
// made for that one connection. A gate that is frozen then names it; see FrozenBy.
func (r *Registrar) Over(user string) *Registrar {
	over := *r
	over.user = user
	return &over
}

// Hosting is r for instances whose processes are connected as the instance's
// principal: a later registration evicts that too, whether or not anything was issued.
func (r *Registrar) Hosting() *Registrar {
	hosting := *r
	hosting.whole = true
	return &hosting
}

// FrozenBy reports whether a gate is frozen by a registration over the connection of
// this user.
func FrozenBy(gate messages.Instance, user string) bool {
	return gate.State == messages.InstanceFrozen && gate.Operation.ID == registrationOf(user)
}

// Register makes the caller the one process of an instance, with the epoch that
// follows its predecessor's; the first has epoch 0. Before it answers, all that was
// issued to the predecessor is revoked and its holders are evicted, so the caller
// opens no connection as one of them before. A registration that another process
// has not finished is superseded.
//
// Refused with messages.InstanceForeign when the instance is another principal's,
// and InstanceSuperseded when another process registered meanwhile.
func (r *Registrar) Register(ctx context.Context, ask messages.RegisterInstance) (messages.InstanceRegistered, error) {
	if err := CheckRegistration(ask); err != nil {
		return messages.InstanceRegistered{}, err
	}
	g := &gate{Registrar: r, endpoint: ask.Endpoint, instance: ask.Instance}
	if err := g.seize(ctx, ask.Principal); err != nil {
		return messages.InstanceRegistered{}, fmt.Errorf("register %s of %s: %w", ask.Instance, ask.Endpoint, err)
	}
	answer := messages.InstanceRegistered{Instance: g.Instance, Revision: g.row.Revision}
	if g.State == messages.InstanceOpen { // the first process: nobody was before it
		return answer, nil
	}
	var former []messages.Principal
	if r.whole {
		former = append(former, g.Principal)
	}
	answer, err := g.finish(ctx, g.Epoch+1, former...)
	if err != nil {
		return messages.InstanceRegistered{}, fmt.Errorf("register %s of %s: %w", ask.Instance, ask.Endpoint, err)
	}
	return answer, nil
}

// Reconcile opens a gate that a registration left frozen, at the epoch it had, once
// whoever froze it is gone, all that was issued is revoked, and all holders and the
// instance's principal are evicted. What the registration had done stays done.
//
// Refused with messages.InstanceNotFound, InstanceNotFrozen for a gate that is open,
// what gone fails with, after which nothing was changed, and InstanceSuperseded when
// a process registered meanwhile.
func (r *Registrar) Reconcile(ctx context.Context, ask messages.ReconcileInstance, gone Gone) (messages.InstanceRegistered, error) {
	if err := CheckInstance(ask.Endpoint, ask.Instance); err != nil {
		return messages.InstanceRegistered{}, err
	}
	g := &gate{Registrar: r, endpoint: ask.Endpoint, instance: ask.Instance}
	err := g.read(ctx)
	switch {
	case err != nil:
	case !g.found:
		err = messages.InstanceNotFound
	case g.State == messages.InstanceOpen:
		err = messages.InstanceNotFrozen
	default:
		if err = gone(ctx, g.Instance); err != nil {
			break
		}
		var answer messages.InstanceRegistered
		if answer, err = g.finish(ctx, g.Epoch, g.Principal); err == nil {
			return answer, nil
		}
	}
	return messages.InstanceRegistered{}, fmt.Errorf("reconcile %s of %s: %w", ask.Instance, ask.Endpoint, err)
}

// CheckRegistration refuses what no instance can be registered by.
func CheckRegistration(ask messages.RegisterInstance) error {
	if err := CheckInstance(ask.Endpoint, ask.Instance); err != nil {
		return err
	}
	_, err := parseHolder(ask.Principal.String())
	return err
}

// CheckInstance refuses what cannot name an instance of an endpoint.
func CheckInstance(endpoint, instance string) error {
	if !isToken(endpoint) {
		return messages.Malformed.Because("an endpoint is one token of [A-Za-z0-9_-]")
	}
	if names.CheckUID(instance) != nil {
		return messages.Malformed.Because("an instance is named by 26 to 32 characters of [a-z0-9]")
	}
	return nil
}

// gate is one instance's gate during one call.
type gate struct {
	*Registrar
	endpoint, instance string

	messages.Instance
	row   Row
	found bool
}

// read reads the gate under a proved leader: what is refused next rests on it.
func (g *gate) read(ctx context.Context) error {
	if err := g.store.Sync(ctx); err != nil {
		return err
	}
	row, found, err := g.store.Get(ctx, InstanceKey(g.endpoint, g.instance))
	g.row, g.found, g.Instance = row, found, messages.Instance{}
	if err != nil {
		return err
	}
	if !found {
		g.row.Key = InstanceKey(g.endpoint, g.instance)
		return nil
	}
	g.Instance, err = DecodeInstance(row)
	return err
}

// seize creates the gate, or freezes it in our name. What is issued at the same moment
// writes the gate and changes nothing in it; whoever changed it has registered.
func (g *gate) seize(ctx context.Context, p messages.Principal) error {
	operation := messages.OperationRef{ID: g.newID(), Kind: KindRegistration}
	if g.user != "" {
		operation.ID = registrationOf(g.user)
	}
	turn := g.store.begin()
	for first := true; ; first = false {
		before := g.Instance
		if err := g.read(ctx); err != nil {
			return err
		}
		if !first && before != g.Instance {
			return messages.InstanceSuperseded
		}
		next := g.Instance
		switch {
		case !g.found:
			next = messages.Instance{Endpoint: g.endpoint, Name: g.instance, State: messages.InstanceOpen, Generation: 1, Principal: p}
		case g.Principal != p:
			return messages.InstanceForeign
		default:
			next.State, next.Operation = messages.InstanceFrozen, operation
		}
		err := g.write(ctx, next)
		if !errors.Is(err, ErrLost) {
			return err
		}
		if !turn.pause(ctx) {
			return messages.Contended
		}
	}
}

// write puts next over the gate as it was read.
func (g *gate) write(ctx context.Context, next messages.Instance) error {
	value, err := EncodeInstance(next, g.newID())
	if err != nil {
		return err
	}
	revision, err := g.store.Apply(ctx, Batch{Writes: []Write{Replace(g.row, value)}, Witness: g.row.Key})
	if err == nil {
		g.Instance, g.found = next, true
		g.row.Value, g.row.Revision = value, revision
	}
	return err
}

// finish ends what was issued before and opens the frozen gate at epoch.
func (g *gate) finish(ctx context.Context, epoch uint64, more ...messages.Principal) (messages.InstanceRegistered, error) {
	holders, revoked, err := g.revoke(ctx)
	if err != nil {
		return messages.InstanceRegistered{}, err
	}
	for _, p := range more {
		if !slices.Contains(holders, p) {
			holders = append(holders, p)
		}
	}
	if len(holders) > 0 {
		if err := g.evict(ctx, holders); err != nil {
			return messages.InstanceRegistered{}, err
		}
	}
	next := g.Instance
	next.State, next.Operation = messages.InstanceOpen, messages.OperationRef{}
	next.Epoch, next.Generation, next.RegistrationRevision = epoch, next.Generation+1, g.row.Revision
	if err := g.write(ctx, next); err != nil {
		return messages.InstanceRegistered{}, superseded(err)
	}
	return messages.InstanceRegistered{Instance: g.Instance, Revision: g.row.Revision, Revoked: revoked}, nil
}

// revoke revokes every credential of the instance, and names whoever ever held one.
// Issuing touches the gate, so with the gate frozen none can be missed. Each batch
// lands only while the gate is as we froze it: what a successor issues is not ours
// to revoke.
func (g *gate) revoke(ctx context.Context) (holders []messages.Principal, revoked int, err error) {
	family, err := g.family(ctx)
	if err != nil {
		return nil, 0, err
	}
	var writes []Write
	for _, c := range family {
		if !slices.Contains(holders, c.Holder) {
			holders = append(holders, c.Holder)
		}
		if c.State == CredentialRevoked {
			continue
		}
		c.State = CredentialRevoked
		value, err := EncodeInstanceCredential(c)
		if err != nil {
			return nil, 0, err
		}
		writes = append(writes, Fenced(InstanceCredentialKey(c.Endpoint, c.Instance, c.ID), value, Pin{Key: g.row.Key, Revision: g.row.Revision}))
	}
	for batch := range slices.Chunk(writes, revokeAtOnce) {
		if _, err := g.store.Apply(ctx, Batch{Writes: batch}); err != nil {
			return nil, 0, superseded(err)
		}
	}
	return holders, len(writes), nil
}

// family reads every credential of the instance.
func (g *gate) family(ctx context.Context) ([]InstanceCredential, error) {
	if err := g.store.Sync(ctx); err != nil {
		return nil, err
	}
	keys, err := g.store.List(ctx, InstanceCredentialsOf(g.endpoint, g.instance))
	if err != nil {
		return nil, err
	}
	family := make([]InstanceCredential, len(keys))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(readAtOnce)
	for i, key := range keys {
		reads.Go(func() error {
			row, err := mustGet(ctx, g.store, key)
			if err == nil {
				family[i], err = DecodeInstanceCredential(row)
			}
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(family, func(a, b InstanceCredential) int { return strings.Compare(a.ID, b.ID) })
	return family, nil
}

// superseded is what a write of ours that is lost means while the gate was frozen
// in our name.
func superseded(err error) error {
	if errors.Is(err, ErrLost) {
		return messages.InstanceSuperseded
	}
	return err
}
