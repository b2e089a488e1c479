package callout

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// E088. Reads that hang hold up those who wait for them and nobody else.
func TestSlowReadsHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 5 { // a machine with much to do may be too late for all of the slow ones
		if s.overtakes(20) {
			return
		}
	}
	t.Error("nobody is decided before those whose reads hang")
}

// overtakes has so many ask whose reads hang, then one whose read does not, and
// reports whether that one was decided while none of the others was.
func (s *stage) overtakes(slow int) bool {
	s.Helper()
	h := &held{asked: make(chan struct{}, 64*slow)}
	s.answer.Store(h.answer)
	before := len(s.denials.List())
	var clients sync.WaitGroup
	for range slow {
		clients.Go(s.knock)
	}
	for range slow {
		<-h.asked
	}
	s.works()
	s.isRefused()
	decided := len(s.denials.List()) - before
	h.letGo()
	clients.Wait()
	return decided <= 1 // none if its answer was there before its record
}

// E092. A request whose answer cannot be sent has none: it is said so once, and no
// other answer follows.
func TestAnAnswerThatCannotBeSentIsTheLast(t *testing.T) {
	t.Parallel()
	s := start(t)
	dialer, err := broker.NewDialer(broker.Config{URL: s.space.URL(), Space: s.space.Name, Material: s.space.Material, Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	conn, err := dialer.Dial(t.Context(), broker.PlainCallout(2), func(*broker.Conn) error { return nil })
	s.must(err)
	t.Cleanup(func() { conn.Sever(); <-conn.Ended() })
	requests := make(chan *nats.Msg, 1) // one connect
	_, err = conn.NATS().Subscribe(broker.CalloutSubject, func(m *nats.Msg) { requests <- m })
	s.must(err)
	s.must(conn.NATS().Flush())
	s.knock()
	heard := <-requests

	opener, err := connect.NewOpener(connect.OpenerConfig{XKey: s.space.Material.XKey.Seed})
	s.must(err)
	profiles, err := connect.NewProfiles(s.space.Name, nil)
	s.must(err)
	key := func(a trust.Account) connect.AccountKey {
		return connect.AccountKey{Account: s.space.Material.Account(a), Signing: s.space.Material.Signing[a].Seed}
	}
	answerer, err := connect.NewAnswerer(key(trust.AUTH), key(trust.DATA))
	s.must(err)
	reads, failed := 0, &connect.Denials{}
	reader, _ := s.tree.Ref("reader")
	d := &decision{reader: reader, noted: func(error) { reads++ }, log: slog.New(slog.DiscardHandler),
		Config: Config{Opener: opener, Verifier: anybody{}, Judge: connect.NewJudge(profiles), Answerer: answerer, Denials: failed, Now: time.Now}}
	lost := &nats.Msg{Subject: heard.Subject, Reply: heard.Reply, Header: heard.Header, Data: heard.Data} // of no connection
	if d.make(t.Context(), &arrival{message: lost}, time.Now().Add(longEnough)) {
		t.Error("it counts as sent")
	}
	if list := failed.List(); len(list) != 1 || list[0].Kind != messages.Unanswered || list[0].Reason != messages.BrokerAway.Reason || reads != 1 {
		t.Errorf("read %d times, recorded %+v", reads, list)
	}
}
