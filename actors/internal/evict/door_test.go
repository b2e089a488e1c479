package evict_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// door answers every connect of a stage, as the service would, and settles. Who is
// frozen is refused; who was read before is not, however late he is answered.
type door struct {
	s        *stage
	opener   *connect.Opener
	answerer *connect.Answerer
	conns    []*nats.Conn
	// lifetime of whoever is admitted; an hour unless a test says so.
	lifetime time.Duration
	// deaf keeps it from settling.
	deaf bool
	// settling, when not nil, is called once it was asked to settle.
	settling func()

	mu     sync.Mutex
	frozen map[string]bool
	held   map[string]chan struct{} // closed to let the answer go, by token
	read   map[string]chan struct{} // closed when the decision has read, by token
	open   map[chan struct{}]bool   // closed when the decision is over
	asked  int                      // how often it was to settle
	all    sync.WaitGroup
}

// openDoor answers connects over two connections.
func (s *stage) openDoor() *door {
	s.Helper()
	opener, err := connect.NewOpener(connect.OpenerConfig{XKey: s.m.XKey.Seed})
	s.must(err)
	key := func(a trust.Account) connect.AccountKey {
		return connect.AccountKey{Account: s.m.Account(a), Signing: s.m.Signing[a].Seed}
	}
	answerer, err := connect.NewAnswerer(key(trust.AUTH), key(trust.DATA))
	s.must(err)
	d := &door{s: s, opener: opener, answerer: answerer, lifetime: time.Hour, frozen: map[string]bool{},
		held: map[string]chan struct{}{}, read: map[string]chan struct{}{}, open: map[chan struct{}]bool{}}
	for i := range 2 {
		nc := s.conn(broker.Callout(i + 1))
		_, err := nc.QueueSubscribe(broker.CalloutSubject, broker.CalloutQueue, func(m *nats.Msg) { d.all.Go(func() { d.decide(m) }) })
		s.must(err)
		s.must(nc.Flush())
		d.conns = append(d.conns, nc)
	}
	s.Cleanup(d.all.Wait)
	return d
}

func (d *door) decide(m *nats.Msg) {
	over := make(chan struct{}) // capacity 0: closed, never sent to
	d.mu.Lock()
	d.open[over] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, over)
		close(over)
	}()
	r, err := d.opener.Open(m.Header.Get(connect.SealHeader), m.Data)
	if err != nil {
		d.s.Errorf("a connect does not open: %v", err)
		return
	}
	token := r.Token.Reveal()
	name, uid, _ := strings.Cut(token, "/")
	owner, actor, _ := strings.Cut(name, ".")
	d.mu.Lock()
	frozen, hold, read := d.frozen[name], d.held[token], d.read[token]
	delete(d.read, token)
	d.mu.Unlock()
	if read != nil {
		close(read)
	}
	if hold != nil {
		<-hold
	}
	answer := func() ([]byte, error) {
		if frozen {
			return d.answerer.Deny(r, messages.GateShut, time.Now())
		}
		may := jwt.Permission{Allow: jwt.StringList{"x"}, Deny: jwt.StringList{"$SYS.>"}}
		return d.answerer.Admit(r, connect.Admission{Principal: messages.Principal{Owner: owner, Actor: actor}, UID: uid,
			Expires: time.Now().Add(d.lifetime), Permissions: jwt.Permissions{Pub: may, Sub: may}}, time.Now())
	}
	sealed, err := answer()
	if err != nil {
		d.s.Errorf("answer %s: %v", name, err)
		return
	}
	_ = m.Respond(sealed)
}

// freeze lets nobody of a target in who is read from now on.
func (d *door) freeze(targets ...messages.Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range targets {
		d.frozen[t.Principal.String()] = true
	}
}

// hold keeps the answer to whoever shows the token until let go. read is closed when
// he has been read.
func (d *door) hold(token string) (read <-chan struct{}, letGo func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held, seen := make(chan struct{}), make(chan struct{})
	d.held[token], d.read[token] = held, seen
	letGo = sync.OnceFunc(func() { close(held) })
	d.s.Cleanup(letGo)
	return seen, letGo
}

// Settle waits for the decisions that had begun, as responders do.
func (d *door) Settle(ctx context.Context, m messages.SettleResponders) (messages.Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	d.mu.Lock()
	d.asked++
	var wait []chan struct{}
	for over := range d.open {
		wait = append(wait, over)
	}
	d.mu.Unlock()
	if d.settling != nil {
		d.settling()
	}
	if d.deaf {
		<-ctx.Done()
	}
	for _, over := range wait {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return messages.Settled{}, nil
	}
	var out messages.Settled
	for _, nc := range d.conns {
		if err := nc.FlushWithContext(ctx); err != nil {
			return messages.Settled{}, nil
		}
		out.Connections = append(out.Connections, d.s.ref(nc))
	}
	return out, nil
}

// late is a client that was read before everybody froze, and whose answer is held.
type late struct {
	letGo func()
	// ended hands over how its connect went.
	ended chan *nats.Conn
}

// lateClient begins to connect and returns once it was read.
func (d *door) lateClient(t testing.TB, url, token string) *late {
	t.Helper()
	read, letGo := d.hold(token)
	l := &late{letGo: letGo, ended: make(chan *nats.Conn, 1)} // one result
	d.all.Go(func() {
		nc, err := d.s.dial(url, token)
		if err != nil {
			nc = nil
		}
		l.ended <- nc
	})
	select {
	case <-read:
	case <-time.After(longEnough):
		t.Fatal("nobody read it")
	}
	return l
}
