package supervisor

import (
	"context"
	"sync"
	"time"
)

// healing is a fence that is not over.
type healing struct {
	reason error // the first one
	began  time.Time
	ended  bool // what the plan ends is ended; the rest is reopening
}

// fence is asked for by a life below the child k. While one heals, only a child that
// it has reopened already is listened to.
func (g *group) fence(k *seat, by string, reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase != groupOpen && g.phase != groupOpening {
		return
	}
	if g.healing != nil && !(g.healing.ended && k.up != 0 && contains(g.spec.Fence.Reopens, k.spec.Name)) {
		return
	}
	now := g.tree.set.clock.Now()
	delay, exhausted := g.fences.death(now, g.tree.set.restart, g.tree.set.random, !isOutage(reason))
	if exhausted {
		g.fail(&Failure{Path: g.path, Phase: PhaseRun, Cause: gather("fence "+g.path, []error{ErrExhausted, reason})})
		return
	}
	g.beginFence(by, reason, now.Add(delay))
}

// beginFence asks the lane for the fence. The first reason wins. It needs the lock.
func (g *group) beginFence(by string, reason error, notBefore time.Time) {
	if g.phase != groupOpen && g.phase != groupOpening {
		return
	}
	if g.healing == nil {
		g.healing = &healing{reason: reason, began: g.tree.set.clock.Now()}
		g.tree.emit(Fenced{Origin: g.tree.origin(g.path, g.generation), By: by, Reason: reason})
	}
	g.healing.ended = false
	g.suspend(true)
	for _, k := range g.kids {
		if contains(g.spec.Fence.Reopens, k.spec.Name) {
			if notBefore.After(k.notBefore) {
				k.notBefore = notBefore
			}
			break
		}
	}
	g.request.pending, g.request.fence = true, true
	if g.request.cause == nil {
		g.request.cause = g.healing.reason
	}
	g.poke()
}

// healed ends the fence, if there is one. It needs the lock.
func (g *group) healed() {
	if g.healing == nil {
		return
	}
	h := g.healing
	g.healing = nil
	g.fences.opened = g.tree.set.clock.Now()
	g.suspend(false)
	g.tree.emit(Healed{
		Origin: g.tree.origin(g.path, g.generation), Reason: h.reason, Took: g.tree.since(h.began),
	})
}

// suspend closes the dynamic groups of the plan to new children, or opens them again.
func (g *group) suspend(yes bool) {
	for _, below := range g.ends() {
		below.mu.Lock()
		below.suspended = yes
		below.mu.Unlock()
	}
}

func (g *group) ends() []*group {
	var out []*group
	for _, k := range g.kids {
		if below, ok := k.body.(*group); ok && contains(g.spec.Fence.Ends, k.spec.Name) {
			out = append(out, below)
		}
	}
	return out
}

// endChildren ends what was added to the dynamic groups of the plan.
func (g *group) endChildren(ctx context.Context, cause error) {
	var wg sync.WaitGroup
	for _, below := range g.ends() {
		for _, k := range below.addedKids() {
			wg.Go(func() {
				if err := below.end(ctx, k, Fencing, cause); err != nil {
					g.tree.set.logger.Warn("a child did not end in order", "actor", k.path, "error", err)
				}
			})
		}
	}
	wg.Wait()
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}
