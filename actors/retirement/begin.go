package retirement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/operation"
	"github.com/cotal-ai/authplane/messages"
)

// beginAtOnce bounds how many are begun at the same time: what comes together travels
// in one batch.
const beginAtOnce = 64

// beginAsked begins every retirement that any process has asked for and that is not
// owed yet, and returns the operations that are begun. One that cannot be begun stops
// no other.
func (c *clerk) beginAsked(ctx context.Context, owed messages.Owed) (begun []string, err error) {
	asked, failed := ledger.Asked(ctx, c.store) // a row that cannot be read hides no other
	var mu sync.Mutex                           // of what the beginnings tell
	var all sync.WaitGroup
	turns := make(chan struct{}, beginAtOnce) // held by whoever begins
	unbegun := slices.DeleteFunc(asked, func(uid string) bool {
		id := ledger.OperationOf(uid)
		return slices.Contains(owed.Ops, id) || c.books.isFinished(id)
	})
	for _, uid := range unbegun { // all of them, before the first one asks for his eviction
		c.config.coming.add(ledger.OperationOf(uid))
	}
	for _, uid := range unbegun {
		id := ledger.OperationOf(uid)
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			op, err := c.begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) {
				return c.records.BeginRetirement(ctx, messages.AskRetirement{UID: uid})
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				c.config.coming.over(id)
				failed = errors.Join(failed, err)
			case op.Step == messages.StepDone:
				c.config.coming.over(id)
				c.books.finish(id)
			default:
				begun = append(begun, id)
			}
		})
	}
	all.Wait()
	slices.Sort(begun)
	return begun, failed
}

// beginTakeover begins a takeover, or finds the one of that id, and has it run.
func (c *clerk) beginTakeover(ctx context.Context, m messages.BeginTakeover) (messages.OperationProgress, error) {
	var err error
	if m.UID == "" {
		if m.UID, err = c.meant(ctx, m); err != nil {
			return messages.OperationProgress{}, err
		}
	}
	op, err := c.begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) {
		return c.records.BeginTakeover(ctx, m)
	})
	if err != nil {
		return messages.OperationProgress{}, err
	}
	c.look()
	return c.books.show(op), nil
}

// meant is the incarnation of a takeover that names none: that of the operation of this
// id, or else the one that stands.
func (c *clerk) meant(ctx context.Context, m messages.BeginTakeover) (string, error) {
	op, err := c.records.Operation(ctx, m.ID)
	if err == nil {
		return op.UID, nil
	}
	if !errors.Is(err, messages.OperationNotFound) {
		return "", err
	}
	found, err := ledger.NewReader(c.store, nil).Authority(ctx, messages.ReadAuthority{Principal: m.Principal, Head: true})
	if err == nil && !found.HasHead {
		err = messages.IncarnationUnknown.Because("nothing was ever issued to %s", m.Principal)
	}
	return found.Head.UID, err
}

// begin lands the first step of an operation and returns the operation as it stands
// then.
func (c *clerk) begin(ctx context.Context, first func(context.Context) (messages.Operation, ledger.Step, error)) (op messages.Operation, err error) {
	_, err = c.records.Land(ctx, lane{c.life.Ref(c.config.Claim)}, func(ctx context.Context) (step ledger.Step, err error) {
		op, step, err = first(ctx)
		return step, err
	})
	return op, away(err)
}

// revokeHandle ends what was derived from a handle. It has no actor of its own: whoever
// asks waits for it, and asks again if it fails.
func (c *clerk) revokeHandle(ctx context.Context, m messages.RevokeHandle) (messages.HandleRevoked, error) {
	done, err := operation.RevokeHandle(ctx, portsOf(c.life, c.config), renewal{c.life.Ref(sweeperOf(c.config.Path)), c.config.evictWithin()},
		ledger.Handle{Issuer: m.Issuer, ID: m.ID})
	return done, away(err)
}

// away says of a plane that is not held here that it is elsewhere, or will be back.
func away(err error) error {
	for _, gone := range []messages.Error{messages.ClaimFenced, messages.ClaimReleased, messages.ClaimLost} {
		if errors.Is(err, gone) {
			return messages.PlaneAway.From(err)
		}
	}
	return err
}

// unask takes back what this process asked for and what is recorded by now: whoever
// holds the plane goes on with it.
func (c *clerk) unask(ctx context.Context) error {
	uids, err := ledger.AskedBy(ctx, c.store, c.config.Instance)
	if err != nil || len(uids) == 0 {
		return err
	}
	recorded, err := c.recorded(ctx, uids)
	if err != nil {
		return err
	}
	if len(recorded) == 0 {
		return nil
	}
	_, err = ask[messages.Unasked](ctx, writeWithin, c.life.Ref(c.config.Writer), messages.Unask{UIDs: recorded})
	return err
}

// recorded are those of incarnations whose retirement is.
func (c *clerk) recorded(ctx context.Context, uids []string) ([]string, error) {
	missing := make([]bool, len(uids))
	var reading errgroup.Group
	reading.SetLimit(beginAtOnce)
	for i, uid := range uids {
		reading.Go(func() error {
			_, err := c.records.Operation(ctx, ledger.OperationOf(uid))
			if missing[i] = errors.Is(err, messages.OperationNotFound); missing[i] {
				return nil
			}
			return err
		})
	}
	err := reading.Wait()
	var recorded []string
	for i, uid := range uids {
		if !missing[i] {
			recorded = append(recorded, uid)
		}
	}
	return recorded, err
}

// list is everything that is owed, as it is recorded, with what is known here. One
// that cannot be read is listed by its id, and hides no other.
func (c *clerk) list(ctx context.Context) (messages.Operations, error) {
	ops, err := c.records.Owed(ctx)
	unreadable := ledger.CorruptKeys(err)
	if err != nil && len(unreadable) == 0 {
		return messages.Operations{}, err
	}
	var all messages.Operations
	for _, op := range ops {
		all.Items = append(all.Items, c.books.show(op))
	}
	for _, key := range unreadable {
		poisoned := messages.OperationProgress{WaitingFor: messages.RowCorrupt.Message, Next: messages.RowCorrupt.Next}
		poisoned.ID = strings.TrimPrefix(key, ledger.OperationKey(""))
		all.Items = append(all.Items, poisoned)
	}
	slices.SortStableFunc(all.Items, byBegin)
	return all, nil
}

func (c *clerk) read(ctx context.Context, id string) (messages.OperationProgress, error) {
	op, err := c.records.Operation(ctx, id)
	return c.books.show(op), err
}
