package supervisor

import (
	"context"
)

// Go runs a task beside the actor. Its context is cancelled when the life is over,
// and the end of the life waits for it: until then no next life begins, and a task
// that does not end is reported as still running. A panic in a task is the life's
// death. Once the life is over no task is started.
func (l *Life) Go(name string, task func(ctx context.Context)) {
	l.mu.Lock()
	if l.phase == lifeOver {
		l.mu.Unlock()
		return
	}
	l.lastTask++
	id := l.lastTask
	l.tasks[id] = name
	l.mu.Unlock()
	go func() {
		defer l.taskEnded(id)
		l.guard("task "+name, func() { task(l.ctx) })
	}()
}

func (l *Life) taskEnded(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tasks, id)
	if l.phase == lifeOver && len(l.tasks) == 0 {
		close(l.idle)
	}
}
