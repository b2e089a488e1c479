package broker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// answerAll answers every connect by placing its user in an account, as a callout
// would that had lost its mind: no question asked.
func answerAll(t *testing.T, m *trust.Material, account trust.Account, signedBy trust.Key) nats.MsgHandler {
	t.Helper()
	xkey, err := nkeys.FromCurveSeed([]byte(m.XKey.Seed.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	return func(msg *nats.Msg) {
		sealed := msg.Header.Get("Nats-Server-Xkey")
		plain, err := xkey.Open(msg.Data, sealed)
		if err != nil {
			t.Errorf("the request does not open: %v", err)
			return
		}
		request, err := jwt.DecodeAuthorizationRequestClaims(string(plain))
		if err != nil {
			t.Errorf("the request is no request: %v", err)
			return
		}
		user := jwt.NewUserClaims(request.UserNkey)
		user.Name = "placed"
		user.IssuerAccount = m.Account(account)
		token, err := user.Encode(m.Signer(signedBy.Public))
		if err != nil {
			t.Error(err)
			return
		}
		answer := jwt.NewAuthorizationResponseClaims(request.UserNkey)
		answer.Audience = request.Server.ID
		answer.IssuerAccount = m.Account(trust.AUTH)
		answer.Jwt = token
		encoded, err := answer.Encode(m.Signer(m.Signing[trust.AUTH].Public))
		if err != nil {
			t.Error(err)
			return
		}
		reply, err := xkey.Seal([]byte(encoded), sealed)
		if err == nil {
			err = msg.Respond(reply)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// knock connects as a client does: as the sentinel, with a bearer.
func knock(space *natsdtest.Space) (*nats.Conn, error) {
	return nats.Connect(space.URL(), nats.UserCredentials(trust.SentinelCreds(space.Dir)), nats.Token("a bearer"),
		nats.Timeout(10*time.Second), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
}

func TestTheServerPlacesUsersInDataAlone(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	m := space.Material
	for _, tc := range []struct {
		account  trust.Account
		signedBy trust.Key
		placed   bool
	}{
		{trust.DATA, m.Signing[trust.DATA], true},
		{trust.CTRL, m.Signing[trust.CTRL], false},
		{trust.SVC, m.Signing[trust.SVC], false},
		{trust.SYS, m.Observer, false},
		{trust.SYS, m.Evictor, false},
		// The server would not mind; the minting does. See trust.Material.MintOwn.
		{trust.AUTH, m.Signing[trust.AUTH], true},
	} {
		t.Run(string(tc.account), func(t *testing.T) {
			c, err := dialer(t, space).Dial(t.Context(), broker.Callout(1), newCustody(t).keep)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.NATS().QueueSubscribe(broker.CalloutSubject, broker.CalloutQueue, answerAll(t, m, tc.account, tc.signedBy)); err != nil {
				t.Fatal(err)
			}
			if err := c.NATS().Flush(); err != nil {
				t.Fatal(err)
			}
			nc, err := knock(space)
			if nc != nil {
				nc.Close()
			}
			if (err == nil) != tc.placed {
				t.Errorf("the client got %v", err)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoConnectFailsAcrossRenewalsOfTheCallout(t *testing.T) {
	t.Parallel()
	space := natsdtest.NewSpace(t, "acme")
	var mu sync.Mutex
	subs := map[*broker.Conn]*nats.Subscription{}
	handler := answerAll(t, space.Material, trust.DATA, space.Material.Signing[trust.DATA])
	s, err := dialer(t, space, shortLives).Stand(t.Context(), broker.Callout(1), newCustody(t).keep, broker.Use{
		Prove: func(_ context.Context, c *broker.Conn) error {
			sub, err := c.NATS().QueueSubscribe(broker.CalloutSubject, broker.CalloutQueue, handler)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			subs[c] = sub
			return c.NATS().Flush()
		},
		Retire: func(ctx context.Context, c *broker.Conn) {
			mu.Lock()
			sub := subs[c]
			mu.Unlock()
			drained := sub.StatusChanged(nats.SubscriptionClosed)
			if err := sub.Drain(); err != nil {
				t.Error(err)
			}
			select {
			case <-drained:
			case <-ctx.Done():
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := run(t, s)
	var connects atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for s.Current().Generation() <= 5 && len(ended) == 0 {
				nc, err := knock(space)
				if err != nil {
					t.Errorf("connect %d: %v", connects.Load(), err)
					return
				}
				connects.Add(1)
				nc.Close()
			}
		})
	}
	clients.Wait()
	t.Logf("%d connects", connects.Load())
	stop()
	if err := awaitErr(t, ended, "the run ends"); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
