package barrier

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
)

// proofs lets those who need a proof of the leader at the same time share one, since
// each is a write. Per connection one is under way at a time, and nobody is given one
// that began before he asked. The zero value is ready.
type proofs struct {
	mu      sync.Mutex
	running map[*broker.Conn]*proof
}

// proof is one, whose outcome stands once done is closed.
type proof struct {
	done chan struct{}
	err  error
}

// share returns the outcome of a do that began after the call did.
func (p *proofs) share(ctx context.Context, conn *broker.Conn, do func(context.Context) error) error {
	for late := false; ; late = true { // late: what runs now began after the call
		running, mine := p.begin(conn)
		if mine {
			defer p.end(conn, running)
			running.err = do(ctx)
			return running.err
		}
		select {
		case <-running.done:
		case <-ctx.Done():
			return messages.BrokerAway.From(context.Cause(ctx))
		}
		if late {
			return running.err
		}
	}
}

// begin returns the proof that is under way; without one it is the caller's to make.
func (p *proofs) begin(conn *broker.Conn) (running *proof, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running, busy := p.running[conn]; busy {
		return running, false
	}
	if p.running == nil {
		p.running = map[*broker.Conn]*proof{}
	}
	running = &proof{done: make(chan struct{}), err: messages.BrokerAway} // unless do returns
	p.running[conn] = running
	return running, true
}

func (p *proofs) end(conn *broker.Conn, mine *proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, conn)
	close(mine.done)
}
