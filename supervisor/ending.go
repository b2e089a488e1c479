package supervisor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

func (l *Life) ended() bool { return l.dead.Load() }

// finish makes the life over. From here on its address refuses, everything that it
// accepted and did not answer is answered, and its context is cancelled. What is
// left of it is ended by keep.
func (l *Life) finish(cause error, orderly bool) { l.finishIf(anyPhase, cause, orderly) }

// giveUp ends a life that is not open yet. One that has opened meanwhile goes on.
func (l *Life) giveUp(cause error) {
	l.finishIf(func(p lifePhase) bool { return p == lifeOpening }, cause, false)
}

func anyPhase(lifePhase) bool { return true }

func (l *Life) finishIf(in func(lifePhase) bool, cause error, orderly bool) {
	l.mu.Lock()
	if l.phase == lifeOver || !in(l.phase) {
		l.mu.Unlock()
		return
	}
	reason := l.addr.unavailable
	l.diedIn = PhaseRun
	switch l.phase {
	case lifeOpening:
		l.diedIn = PhaseOpen
	case lifeDraining:
		l.diedIn = PhaseDrain
	case lifeClosing:
		l.diedIn, reason = PhaseClose, l.addr.closing
	}
	l.phase, l.cause, l.orderly = lifeOver, cause, orderly
	l.dead.Store(true)
	if len(l.tasks) == 0 {
		close(l.idle)
	}
	l.mu.Unlock()
	l.addr.leave(l, reason)
	l.mailbox.close(reason)
	l.cancel(cause)
	close(l.over)
}

// keep waits for the end of the life and then ends everything that belongs to it.
func (l *Life) keep() {
	<-l.over
	l.seat.lifeOver(l)
	for _, r := range l.tree.custody.of(l.seat.path, l.generation) {
		l.cut(r)
	}
	l.stop()
	l.await(l.stopped, l.idle)
	l.awaitResources()
	l.mu.Lock()
	watchers := l.watchers
	l.watchers = nil
	l.mu.Unlock()
	for _, w := range watchers {
		l.tree.terminated(w, l.private)
	}
	l.leaf.lifeGone(l)
	close(l.gone)
}

// stop stops the actor behind the life's back. It asks the registry itself, since a
// stop of what has stopped already would end in the library's dead-letter log.
func (l *Life) stop() bool {
	pid := l.pid.Load()
	if pid == nil {
		return false
	}
	if p, ok := l.tree.system.ProcessRegistry.Get(pid); ok {
		p.Stop(pid)
	}
	return true
}

// cut severs r in a goroutine of its own, which custody waits for in the end: Sever
// may hang.
func (l *Life) cut(r Resource) { go sever(r) }

// await waits for all of ends, however long, and tells once when it is too long.
func (l *Life) await(ends ...<-chan struct{}) {
	timer := l.tree.set.clock.NewTimer(l.seat.spec.closeWithin())
	defer timer.Stop()
	late := timer.C()
	for _, end := range ends {
		for done := false; !done; {
			select {
			case <-end:
				done = true
			case <-late:
				late = nil
				l.seat.stillRunning(l)
			}
		}
	}
}

// awaitResources gives what was severed a moment to end and to be told of, so that the
// ends of lives and those of their resources are told in one order. What does not end
// stays in custody, and nothing else waits for it: the next life may begin.
func (l *Life) awaitResources() {
	timer := l.tree.set.clock.NewTimer(min(l.seat.spec.closeWithin(), time.Second))
	defer timer.Stop()
	for _, told := range l.tree.custody.told(l.seat.path, l.generation) {
		select {
		case <-told:
		case <-timer.C():
			return
		}
	}
}

// running says what has not ended of a life that is over.
func (l *Life) running() []string {
	var out []string
	select {
	case <-l.stopped:
	default:
		out = append(out, "receive")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.tasks {
		out = append(out, "task "+name)
	}
	return out
}

func (l *Life) watch(w *actor.PID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == lifeOver {
		return false
	}
	l.watchers = append(l.watchers, w)
	return true
}

func (l *Life) unwatch(w *actor.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = without(l.watchers, w)
}
