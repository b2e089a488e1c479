package broker

import (
	"context"
	"sync"
)

// pins counts who is using a connection right now.
type pins struct {
	mu    sync.Mutex
	count int
	// idle is closed when the count falls to zero while somebody waits; nil otherwise.
	idle chan struct{}
}

func (p *pins) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
}

func (p *pins) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count--
	if p.count == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// wait returns once nobody uses the connection, or the context ends. Nobody may
// add meanwhile.
func (p *pins) wait(ctx context.Context) {
	p.mu.Lock()
	if p.count == 0 {
		p.mu.Unlock()
		return
	}
	if p.idle == nil {
		p.idle = make(chan struct{}) // capacity 0: closed, never sent to
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
