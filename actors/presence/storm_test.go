//go:build !race

package presence

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// In a storm a server passes on words late, and all processes are short of time.
// Nobody shall take another for silent because of it.
func TestNobodyIsKickedInAStorm(t *testing.T) {
	s := newStage(t)
	kicks := make(chan messages.KickConnections, 16)
	victim, _ := s.victim()
	a, b := s.start("a", recorder(kicks), victim), s.start("b", recorder(kicks), victim)
	a.hears("a", "b")
	b.hears("a", "b")
	s.admitAll()

	// How many get in is the responders' business, and these are simple ones.
	const clients = 3000
	var in atomic.Int64
	var storm sync.WaitGroup
	began := time.Now()
	for range clients {
		storm.Go(func() {
			nc, err := nats.Connect(s.url, nats.UserCredentials(trust.SentinelCreds(s.dir)), nats.Token("x"), nats.NoReconnect(), nats.Timeout(5*time.Second))
			if err == nil {
				in.Add(1)
				t.Cleanup(nc.Close)
			}
		})
	}
	storm.Wait()
	t.Logf("%d of %d clients were let in within %v", in.Load(), clients, time.Since(began))
	a.hears("a", "b")
	b.hears("a", "b")
	if len(kicks) > 0 {
		t.Errorf("the storm had %d kicked: %+v", len(kicks), <-kicks)
	}
}

// admitAll admits every connect.
func (s *stage) admitAll() {
	s.Helper()
	opener, err := connect.NewOpener(connect.OpenerConfig{XKey: s.m.XKey.Seed})
	s.must(err)
	key := func(a trust.Account) connect.AccountKey {
		return connect.AccountKey{Account: s.m.Account(a), Signing: s.m.Signing[a].Seed}
	}
	answerer, err := connect.NewAnswerer(key(trust.AUTH), key(trust.DATA))
	s.must(err)
	may := jwt.Permission{Allow: jwt.StringList{"x"}, Deny: jwt.StringList{"$SYS.>"}}
	for i := range 4 {
		c := s.dial(broker.Callout(i + 1))
		_, err = c.NATS().QueueSubscribe(broker.CalloutSubject, broker.CalloutQueue, func(m *nats.Msg) {
			r, err := opener.Open(m.Header.Get(connect.SealHeader), m.Data)
			if err != nil {
				s.Errorf("a connect does not open: %v", err)
				return
			}
			sealed, err := answerer.Admit(r, connect.Admission{Principal: messages.Principal{Owner: "u_x", Actor: "laptop"}, UID: instance("u"),
				Permissions: jwt.Permissions{Pub: may, Sub: may}, Expires: time.Now().Add(time.Hour)}, time.Now())
			if err != nil {
				s.Errorf("admit: %v", err)
				return
			}
			_ = m.Respond(sealed) // whether it arrives is the client's concern
		})
		s.must(err)
		s.must(c.NATS().Flush())
	}
}
