package supervisor

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// mailbox is the mailbox of one life. It is bounded and never blocks a sender: what
// it cannot take it refuses. It knows every request that is not answered yet, the
// one being worked on included, so that none is left without an answer when the
// life is over. One short lock guards it; nothing is answered under the lock.
type mailbox struct {
	tree     *Tree
	capacity int
	die      func(error) // ends the life

	mu         sync.Mutex
	queue      fifo
	urgent     *delivery // goes before the queue
	system     []any     // the library's own messages, which go before everything
	waiting    int       // counted messages in the queue
	unanswered []*delivery
	sweepAt    int   // length of unanswered at which settled ones are swept out
	over       error // why nothing is taken any more
	running    bool
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
}

const (
	sweepFloor = 64
	// keptUnanswered bounds the requests from outside the kit that are remembered as
	// unanswered; there is no way to see that their senders gave up.
	keptUnanswered = 8192
)

func newMailbox(t *Tree, capacity int, die func(error)) *mailbox {
	return &mailbox{tree: t, capacity: capacity, die: die, sweepAt: sweepFloor}
}

// errGone is the death by runtime.Goexit inside Receive.
var errGone = errors.New("the actor's goroutine exited")

// post takes d or says why not.
func (m *mailbox) post(d *delivery) error {
	m.mu.Lock()
	if m.over != nil {
		err := m.over
		m.mu.Unlock()
		return err
	}
	if !d.own {
		if m.waiting >= m.capacity {
			m.mu.Unlock()
			return ErrOverloaded
		}
		m.waiting++
	}
	m.queue.push(d)
	var forgotten []*delivery
	if d.ask != nil || d.sender != nil {
		forgotten = m.track(d)
	}
	run := m.wake()
	m.mu.Unlock()
	if run {
		m.dispatcher.Schedule(m.run)
	}
	for _, old := range forgotten {
		old.answer(m.tree, ErrOverloaded)
	}
	return nil
}

// urge puts d before everything that waits.
func (m *mailbox) urge(d *delivery) {
	m.mu.Lock()
	m.urgent = d
	run := m.wake()
	m.mu.Unlock()
	if run {
		m.dispatcher.Schedule(m.run)
	}
}

// close refuses everything from now on and answers with reason what was accepted
// and is not answered, the message being worked on included. Who asked something that
// the actor has seen is told so: it may have been done.
func (m *mailbox) close(reason error) {
	m.mu.Lock()
	if m.over != nil {
		m.mu.Unlock()
		return
	}
	m.over = reason
	left := m.unanswered
	m.unanswered, m.waiting, m.urgent = nil, 0, nil
	m.queue = fifo{}
	m.mu.Unlock()
	for _, d := range left {
		d.refuse(m.tree, reason)
	}
}

// settleSender settles the oldest unanswered request from a sender outside the kit.
func (m *mailbox) settleSender(to *actor.PID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.unanswered {
		if d.sender != nil && d.sender.Equal(to) && d.settled.CompareAndSwap(false, true) {
			return true
		}
	}
	return false
}

func (m *mailbox) counts() (waiting, inFlight int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.unanswered {
		if d.awaited() {
			inFlight++
		}
	}
	return m.waiting, inFlight
}

// track remembers d as unanswered. Settled ones are swept out whenever the list has
// doubled, so that answering needs no lock.
func (m *mailbox) track(d *delivery) (forgotten []*delivery) {
	if len(m.unanswered) >= m.sweepAt {
		kept := m.unanswered[:0]
		for _, old := range m.unanswered {
			if old.awaited() {
				kept = append(kept, old)
			}
		}
		clear(m.unanswered[len(kept):])
		if extra := len(kept) - keptUnanswered; extra > 0 {
			kept, forgotten = dropOldest(kept, extra)
		}
		m.unanswered = kept
		m.sweepAt = max(sweepFloor, 2*len(kept))
	}
	m.unanswered = append(m.unanswered, d)
	return forgotten
}

// dropOldest takes the oldest n requests from outside the kit out of list. Questions of
// the kit stay: their number is that of the goroutines waiting for them.
func dropOldest(list []*delivery, n int) (kept, forgotten []*delivery) {
	kept = make([]*delivery, 0, len(list))
	for _, d := range list {
		if d.ask == nil && len(forgotten) < n {
			forgotten = append(forgotten, d)
		} else {
			kept = append(kept, d)
		}
	}
	return kept, forgotten
}

// wake reports whether the caller has to schedule run. It needs the lock.
func (m *mailbox) wake() bool {
	if m.running || m.invoker == nil {
		return false
	}
	m.running = true
	return true
}

func (m *mailbox) next() (system any, d *delivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.system) > 0:
		system = m.system[0]
		m.system = m.system[1:]
	case m.urgent != nil:
		d, m.urgent = m.urgent, nil
	default:
		if d = m.queue.pop(); d == nil {
			m.running = false
		} else if !d.own {
			m.waiting--
		}
	}
	return system, d
}

func (m *mailbox) run() {
	returned := false
	defer func() {
		if !returned { // runtime.Goexit inside Receive
			m.die(errGone)
			m.dispatcher.Schedule(m.run)
		}
	}()
	for i := 1; ; i++ {
		system, d := m.next()
		if system == nil && d == nil {
			returned = true
			return
		}
		m.invoke(system, d)
		if i%m.dispatcher.Throughput() == 0 {
			runtime.Gosched()
		}
	}
}

func (m *mailbox) invoke(system any, d *delivery) {
	defer func() {
		if v := recover(); v != nil {
			m.die(&PanicError{Value: v, Where: "mailbox", Stack: debug.Stack()})
		}
	}()
	switch {
	case system != nil:
		m.invoker.InvokeSystemMessage(system)
	case d.raw:
		m.invoker.InvokeUserMessage(d.msg)
	default:
		m.invoker.InvokeUserMessage(d)
	}
}

// The library's side.

var _ actor.Mailbox = (*mailbox)(nil)

// PostUserMessage takes what was sent to the life's own PID.
func (m *mailbox) PostUserMessage(message any) {
	d := unwrap(message)
	if err := m.post(d); err != nil {
		d.answer(m.tree, err)
	}
}

// PostSystemMessage never lets a Restart through: the library would run the actor
// again in the middle of its end.
func (m *mailbox) PostSystemMessage(message any) {
	switch message.(type) {
	case *actor.Restart:
		m.die(ErrStopped)
		return
	case *actor.SuspendMailbox, *actor.ResumeMailbox:
		return
	}
	m.mu.Lock()
	m.system = append(m.system, message)
	run := m.wake()
	m.mu.Unlock()
	if run {
		m.dispatcher.Schedule(m.run)
	}
}

// RegisterHandlers may come after the first post; nothing runs before it.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.mu.Lock()
	m.invoker, m.dispatcher = invoker, dispatcher
	run := (len(m.system) > 0 || m.queue.len() > 0) && m.wake()
	m.mu.Unlock()
	if run {
		dispatcher.Schedule(m.run)
	}
}

// Start does nothing: the library's Started does.
func (m *mailbox) Start() {}

// UserMessageCount is the number of messages that wait.
func (m *mailbox) UserMessageCount() int {
	waiting, _ := m.counts()
	return waiting
}
