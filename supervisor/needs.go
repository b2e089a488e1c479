package supervisor

import (
	"context"
	"sync"
)

// bringUp opens the named children that are down, beside its caller, who ends that
// with the function it returns. After a stage that is stuck an attempt that is due is
// still made and waited for: a member that refuses at once would otherwise call it off
// each time that it is asked to close.
func (g *group) bringUp(ctx context.Context, names []string) (end func(stuck bool)) {
	ctx, cancel := context.WithCancelCause(ctx)
	patient, enough := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, name := range names {
		if k := g.child(name); k != nil {
			wg.Go(func() { g.keepTrying(ctx, patient, k) })
		}
	}
	return func(stuck bool) {
		if !stuck {
			cancel(ErrClosing)
		}
		enough()
		wg.Wait()
		cancel(nil)
	}
}

// keepTrying opens k, unless it is open, until it is or patient ends. What was due by
// then is tried once all the same, within ctx.
func (g *group) keepTrying(ctx, patient context.Context, k *seat) {
	_, generation := k.current()
	if alive, _ := k.body.alive(generation); alive {
		return
	}
	for tried := false; ; tried = true {
		if g.ready(patient, k) != nil && (tried || !g.due(k)) {
			return
		}
		_, err := k.body.open(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		k.body.take() // it is tried again, or was not needed
		g.mu.Lock()
		now := g.tree.set.clock.Now()
		delay, _ := k.record.death(now, g.tree.set.restart, g.tree.set.random, false)
		k.notBefore = now.Add(delay)
		g.mu.Unlock()
	}
}

// due reports whether k may be opened by now, with nothing left of its last life.
func (g *group) due(k *seat) bool {
	if !k.body.closed() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.tree.set.clock.Now().Before(k.notBefore)
}
