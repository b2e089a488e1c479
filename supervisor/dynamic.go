package supervisor

import "context"

// Add opens a new child of a dynamic group and returns when it is open. It fails
// with ErrNoSuchActor or ErrNotApplicable when there is no such group, ErrExists,
// ErrUnavailable while the group is not open or a fence heals, and with what the
// child failed with; nothing is left of the child then. It may be called from
// anywhere but inside Receive.
func (t *Tree) Add(ctx context.Context, groupPath string, s Spec) (Ref, error) {
	k := t.seat(groupPath)
	if k == nil {
		return Ref{}, refusal(groupPath, ErrNoSuchActor)
	}
	g, ok := k.body.(*group)
	if !ok || !g.spec.Dynamic {
		return Ref{}, refusal(groupPath, ErrNotApplicable)
	}
	if err := validate(s, true); err != nil {
		return Ref{}, err
	}
	return g.add(ctx, s)
}

// Remove closes a child that was added and takes it out of the tree. If it refuses
// to close or does not in time, the error says so, it stays, and Remove may be called
// again.
func (t *Tree) Remove(ctx context.Context, path string) error {
	k := t.seat(path)
	switch {
	case k == nil:
		return refusal(path, ErrNoSuchActor)
	case !k.added:
		return refusal(path, ErrNotApplicable)
	}
	g := k.parent
	g.finish(k)
	if !g.seize(ctx, k) {
		return k.failure(PhaseClose, ErrStillRunning)
	}
	closed, err := k.body.close(ctx, Removing, nil)
	if closed {
		g.remove(k)
	}
	return err
}

func (g *group) add(ctx context.Context, s Spec) (Ref, error) {
	opening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &flight{cancel: cancel, done: make(chan struct{})}
	defer close(f.done)
	k, err := g.seatFor(s, f)
	if err != nil {
		return Ref{}, err
	}
	g.tree.emit(Added{g.tree.origin(k.path, 0)})
	generation, err := k.body.open(opening)
	g.mu.Lock()
	defer g.mu.Unlock()
	k.op = nil
	g.change()
	if err == nil {
		g.raised(k, generation)
		return Ref{g.tree, k.path}, nil
	}
	if k.body.closed() {
		g.forget(k)
	} else {
		k.finished = true
		g.removeWhenGone(k)
	}
	return Ref{}, err
}

// seatFor makes the seat of a new child, which f opens.
func (g *group) seatFor(s Spec, f *flight) (*seat, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.phase == groupClosing || g.phase == groupClosed:
		return nil, refusal(g.path, ErrClosing)
	case g.phase != groupOpen || g.suspended:
		return nil, refusal(g.path, ErrUnavailable)
	}
	for _, k := range g.kids {
		if k.spec.Name == s.Name {
			return nil, refusal(k.path, ErrExists)
		}
	}
	k := g.tree.build(g, s, true)
	k.op = f
	g.kids = append(g.kids, k)
	return k, nil
}

// end ends a child that was added, by force if need be.
func (g *group) end(ctx context.Context, k *seat, why Why, cause error) error {
	g.finish(k)
	if !g.seize(ctx, k) {
		return nil
	}
	err := g.closeHard(ctx, k, why, cause)
	g.mu.Lock()
	defer g.mu.Unlock()
	if k.body.closed() {
		g.forget(k)
	} else if ctx.Err() == nil {
		k.finished = true
		g.removeWhenGone(k)
	}
	return err
}

// finish makes sure that nobody opens k again.
func (g *group) finish(k *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k.finished = true
}

func (g *group) addedKids() []*seat {
	var out []*seat
	for _, k := range g.children() {
		if k.added {
			out = append(out, k)
		}
	}
	return out
}

// removeWhenGone takes k out once nothing is left of its last life. It needs the lock.
func (g *group) removeWhenGone(k *seat) {
	ctx, cancel := context.WithCancelCause(context.Background())
	f := &flight{cancel: cancel, done: make(chan struct{})}
	k.op = f
	go func() { // who closes the group waits for it
		defer close(f.done)
		defer cancel(nil)
		err := k.body.awaitGone(ctx)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.endOp(k)
		if err == nil {
			g.forget(k)
		}
	}()
}

func (g *group) remove(k *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if k.body.closed() {
		g.forget(k)
	}
}

// forget takes k and everything below it out of the tree. It needs the lock.
func (g *group) forget(k *seat) {
	for i, other := range g.kids {
		if other == k {
			g.kids = append(g.kids[:i:i], g.kids[i+1:]...)
			g.tree.bury(k)
			g.tree.emit(Removed{g.tree.origin(k.path, 0)})
			return
		}
	}
}
