package presence

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/messages"
)

// settleWithin bounds one settling: longer than any decision takes, and a barrier
// has another way to be sure.
const settleWithin = 2 * time.Second

// maxSettling bounds how many settlings a process takes part in at once; what comes
// above is not answered, which proves nothing to who asked.
const maxSettling = 64

// maxToken bounds the name of a question.
const maxToken = 128

// maxSettled bounds one answer.
const maxSettled = 64 << 10

// settledWord is what a process says once its decisions are settled.
type settledWord struct {
	Version     int                      `json:"v"`
	Connections []messages.ConnectionRef `json:"connections"`
}

// settling is the questions that wait for others, and the part this process takes.
type settling struct {
	mu    sync.Mutex
	waits map[string]*wait // by question
	taken int
}

// wait is one question of this process that waits for answers.
type wait struct {
	open map[messages.ConnectionRef]bool // awaited and not settled
	done []messages.ConnectionRef
	all  chan struct{} // closed when nothing is open (capacity 0)
}

func newSettling() *settling { return &settling{waits: map[string]*wait{}} }

// begin waits for connections. The question's name is one that was never asked
// before, so that no late answer to an earlier one is taken for its.
func (s *settling) begin(question string, await []messages.ConnectionRef) (*wait, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waits) >= maxSettling {
		return nil, messages.Busy
	}
	w := &wait{open: map[messages.ConnectionRef]bool{}, all: make(chan struct{})}
	for _, c := range await {
		w.open[c] = true
	}
	if len(w.open) == 0 {
		close(w.all)
	}
	s.waits[question] = w
	return w, nil
}

// end stops waiting and returns what was settled of what was awaited.
func (s *settling) end(question string) messages.Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waits[question]
	delete(s.waits, question)
	return messages.Settled{Connections: w.done}
}

// hear takes what some process answers to a question; what is no such word, or
// answers nothing that is asked here, is ignored.
func (s *settling) hear(question string, data []byte) {
	var said settledWord
	if len(data) > maxSettled || json.Unmarshal(data, &said) != nil || said.Version != version {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waits[question]
	if w == nil {
		return
	}
	for _, c := range said.Connections {
		if !w.open[c] {
			continue
		}
		delete(w.open, c)
		w.done = append(w.done, c)
		if len(w.open) == 0 {
			close(w.all)
		}
	}
}

// take reports whether this process takes part in one more settling.
func (s *settling) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= maxSettling {
		return false
	}
	s.taken++
	return true
}

func (s *settling) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
}

// askAll has every process settle, and waits for those that matter.
func (p *presence) askAll(ctx context.Context, conn *broker.Conn, m messages.SettleResponders) (messages.Settled, error) {
	if !isToken(m.Operation) {
		return messages.Settled{}, messages.Malformed.Because("an operation is named by one token")
	}
	question := m.Operation + "_" + names.NewUID()
	w, err := p.settling.begin(question, m.Await)
	if err != nil {
		return messages.Settled{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	if err := conn.NATS().Publish(broker.SettleSubject(p.config.Space, question), nil); err != nil {
		p.settling.end(question)
		return messages.Settled{}, messages.BrokerAway.From(err)
	}
	select {
	case <-w.all:
	case <-ctx.Done():
	}
	return p.settling.end(question), nil
}

// hearSettle has this process's responders settle, and says so on the connection
// that it was asked on.
func (p *presence) hearSettle(conn *broker.Conn, question string) {
	if !isToken(question) || len(p.config.Responders) == 0 || !p.settling.take() {
		return
	}
	p.life.Go("settle "+question, func(ctx context.Context) {
		defer p.settling.give()
		word, err := json.Marshal(settledWord{Version: version, Connections: p.settle(ctx)})
		if err == nil && ctx.Err() == nil {
			_ = conn.NATS().Publish(broker.SettledSubject(p.config.Space, question), word) // unheard, it proves nothing
		}
	})
}

// settle asks every responder at once and returns the connections of those that have
// settled.
func (p *presence) settle(ctx context.Context) []messages.ConnectionRef {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	answers := make([][]messages.ConnectionRef, len(p.config.Responders))
	var all sync.WaitGroup
	for i, path := range p.config.Responders {
		all.Go(func() {
			settled, err := client.Ask[messages.Settled](ctx, p.life.Ref(path), messages.SettleDecisions{})
			if err == nil {
				answers[i] = settled.Connections
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(slices.Concat(answers...), func(c messages.ConnectionRef) bool { return !sweep.IsServerID(c.ServerID) })
}

// isToken reports whether s may stand as one token of a subject.
func isToken(s string) bool {
	return s != "" && len(s) <= maxToken && !slices.ContainsFunc([]byte(s), func(b byte) bool {
		return !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-')
	})
}
