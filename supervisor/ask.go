package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// DefaultAsk limits a question whose context has no deadline.
const DefaultAsk = 10 * time.Second

// Ask sends msg to a child and waits for its answer, at most until ctx ends, or
// DefaultAsk when ctx has no deadline. It may be called from anywhere but inside
// Receive, where nothing may block.
//
// There is always an answer. If the child is not open, ends before it has
// answered, or panics over the message, it is ErrUnavailable, at once; if too many
// messages wait, ErrOverloaded; if the deadline passes, ErrUnavailable and
// context.DeadlineExceeded. ErrUnanswered says in addition that an actor had seen the
// message and ended before it answered. A message is never delivered twice. An answer that is an
// error value is returned as the error, one of another type than T as ErrWrongAnswer.
func Ask[T any](ctx context.Context, to Ref, msg any) (T, error) {
	var zero T
	answer, err := to.ask(ctx, msg)
	if err != nil {
		return zero, err
	}
	if failure, ok := answer.(error); ok {
		return zero, failure
	}
	if v, ok := answer.(T); ok {
		return v, nil
	}
	if answer == nil && any(zero) == nil { // T is an interface, and nil one of its values
		return zero, nil
	}
	return zero, fmt.Errorf("%s: %w: got %T, asked for %T", to.path, ErrWrongAnswer, answer, zero)
}

// Tell sends msg to a child without waiting. The error says that it was not
// accepted: ErrUnavailable or ErrOverloaded. What was accepted is lost if the life
// ends before it comes to it.
func Tell(to Ref, msg any) error {
	a := to.address()
	if a == nil {
		return refusal(to.path, ErrUnavailable)
	}
	return a.deliver(&delivery{msg: msg})
}

func (r Ref) ask(ctx context.Context, msg any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, late(r.path, ErrUnavailable, err)
	}
	to := r.address()
	if to == nil {
		return nil, refusal(r.path, ErrUnavailable)
	}
	q := &ask{done: make(chan struct{}, 1)}
	defer q.forget(r.tree.asks)
	if err := to.deliver(&delivery{msg: msg, ask: q}); err != nil {
		return nil, err
	}
	var limit <-chan time.Time
	if _, ok := ctx.Deadline(); !ok {
		timer := r.tree.set.clock.NewTimer(DefaultAsk)
		defer timer.Stop()
		limit = timer.C()
	}
	var cause error
	select {
	case <-q.done:
		return q.answer, nil
	case <-ctx.Done():
		cause = ctx.Err()
	case <-limit:
		cause = context.DeadlineExceeded
	}
	if !q.abandon() { // answered in this very moment
		<-q.done
		return q.answer, nil
	}
	return nil, late(r.path, ErrUnanswered, cause)
}

// late is what becomes of a question whose time is over; whoever called it off knows
// that himself.
func late(path string, what, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w: no answer: %w", path, what, cause)
	}
	return fmt.Errorf("%s: no answer: %w", path, cause)
}

// An ask is one question that waits for its answer. It is answered or abandoned,
// once.
type ask struct {
	state  atomic.Uint32
	answer any                       // set before done
	done   chan struct{}             // capacity 1: the answer is never waited for by who gives it
	pid    atomic.Pointer[actor.PID] // how it is known outside; made when somebody wants it
}

const (
	asking uint32 = iota
	answered
	abandoned
)

func (q *ask) waiting() bool { return q.state.Load() == asking }

func (q *ask) complete(answer any) {
	if q.state.CompareAndSwap(asking, answered) {
		q.answer = answer
		q.done <- struct{}{}
	}
}

func (q *ask) abandon() bool { return q.state.CompareAndSwap(asking, abandoned) }

func (q *ask) forget(table *asks) {
	q.abandon()
	if pid := q.pid.Load(); pid != nil {
		table.remove(pid.RequestId)
	}
}

// asks is the process behind the PIDs of questions: one for the whole tree, which
// tells them apart by the request id. A question gets a PID only when its receiver
// asks who the sender is. What comes too late is dropped.
type asks struct {
	id     string
	addr   string
	last   atomic.Uint32
	shards [16]askShard
}

type askShard struct {
	mu   sync.Mutex
	open map[uint32]*ask
}

func (s *asks) shard(id uint32) *askShard { return &s.shards[id%uint32(len(s.shards))] }

// name returns the PID of q.
func (s *asks) name(q *ask) *actor.PID {
	if pid := q.pid.Load(); pid != nil {
		return pid
	}
	pid := &actor.PID{Address: s.addr, Id: s.id, RequestId: s.register(q)}
	if !q.pid.CompareAndSwap(nil, pid) {
		s.remove(pid.RequestId)
		return q.pid.Load()
	}
	if !q.waiting() { // it ended before it could see the PID
		s.remove(pid.RequestId)
	}
	return pid
}

func (s *asks) register(q *ask) uint32 {
	for {
		id := s.last.Add(1)
		sh := s.shard(id)
		sh.mu.Lock()
		if _, taken := sh.open[id]; id == 0 || taken {
			sh.mu.Unlock()
			continue
		}
		if sh.open == nil {
			sh.open = map[uint32]*ask{}
		}
		sh.open[id] = q
		sh.mu.Unlock()
		return id
	}
}

func (s *asks) remove(id uint32) {
	sh := s.shard(id)
	sh.mu.Lock()
	delete(sh.open, id)
	sh.mu.Unlock()
}

func (s *asks) find(id uint32) *ask {
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.open[id]
}

var _ actor.Process = (*asks)(nil)

// SendUserMessage is an answer.
func (s *asks) SendUserMessage(pid *actor.PID, message any) {
	q := s.find(pid.RequestId)
	if q == nil {
		return
	}
	_, answer, _ := actor.UnwrapEnvelope(message)
	if _, dead := answer.(*actor.DeadLetterResponse); dead {
		answer = ErrUnavailable
	}
	q.complete(answer)
}

// SendSystemMessage and Stop mean nothing to a question.
func (s *asks) SendSystemMessage(*actor.PID, any) {}
func (s *asks) Stop(*actor.PID)                   {}
