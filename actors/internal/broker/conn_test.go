package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

func TestCustodyComesFirst(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)

	if _, err := d.Dial(t.Context(), broker.Writer(instance), nil); err == nil {
		t.Error("a connection was opened that nobody keeps")
	}

	refusal := errors.New("no room")
	var offered *broker.Conn
	returned := false
	c, err := d.Dial(t.Context(), broker.Writer(instance), func(c *broker.Conn) error {
		offered = c
		if returned {
			t.Error("custody was told after the caller")
		}
		if !c.NATS().IsConnected() || c.ServerID() != space.Server.ID() || c.ClientID() == 0 {
			t.Errorf("custody was offered something that is not connected: %s, %d", c.ServerID(), c.ClientID())
		}
		return refusal
	})
	returned = true
	if c != nil || !errors.Is(err, refusal) || !strings.Contains(err.Error(), "cotal:auth-mint:acme") {
		t.Fatalf("got %v, %v", c, err)
	}
	if !happened(offered.Ended()) {
		t.Error("the refused connection was not closed")
	}
	natsdtest.Eventually(t, "the server has forgotten it", func() error {
		if n := space.Server.Native().NumClients(); n > 0 {
			return fmt.Errorf("%d clients", n)
		}
		return nil
	})
}

func TestCloseDeliversWhatWasBuffered(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	c, err := dialer(t, space).Dial(t.Context(), broker.Presence(instance), newCustody(t).keep)
	if err != nil {
		t.Fatal(err)
	}
	hear, err := dialer(t, space).Dial(t.Context(), broker.Presence(another), newCustody(t).keep)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := hear.NATS().SubscribeSync("cotal.acme.presence.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := hear.NATS().FlushTimeout(longEnough); err != nil {
		t.Fatal(err)
	}
	const many = 1000
	for range many {
		if err := c.NATS().Publish(broker.PresenceSubject("acme", instance), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !happened(c.Ended()) || !happened(c.Lost()) {
		t.Error("it is closed and has not ended")
	}
	for i := range many {
		if _, err := sub.NextMsg(longEnough); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestCloseWithTheServerGone(t *testing.T) {
	t.Parallel()
	space := natsdtest.NewSpace(t, "acme")
	c := dial(t, dialer(t, space), broker.Reader(instance))
	natsdtest.Stop(t, space.Server)
	await(t, c.Lost(), "it is lost")
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("nothing was buffered, and yet: %v", err)
	}
	if !happened(c.Ended()) {
		t.Error("it has not ended")
	}
}

func TestCloseOfAHalfOpenConnectionSaysWhatItCouldNotDo(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	w := newWire()
	c := dial(t, dialer(t, space, func(c *broker.Config) { c.Open = w.open; c.PingInterval = time.Minute }), broker.Writer(instance))
	w.stall()
	if err := c.NATS().Publish(rows+"uid.x", nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := c.Close(ctx)
	if err == nil || !strings.Contains(err.Error(), "cotal:auth-mint:acme") {
		t.Errorf("got %v", err)
	}
	await(t, c.Ended(), "it ends all the same")
}

func TestSeverIsFinal(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	c := dial(t, dialer(t, space), broker.Reader(instance))
	c.Sever()
	await(t, c.Lost(), "it is lost")
	await(t, c.Ended(), "it has ended")
	if !errors.Is(c.Err(), broker.ErrSevered) || broker.IsAway(c.Err()) {
		t.Errorf("it says %v", c.Err())
	}
	c.Sever()
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("close after sever: %v", err)
	}
	if id := c.ClientID(); id != 0 {
		t.Errorf("it still claims to be client %d", id)
	}
}

func TestLossIsNoticed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lose func(*testing.T, *natsdtest.Space, *wire)
	}{
		"the server stops": {func(t *testing.T, s *natsdtest.Space, _ *wire) { natsdtest.Stop(t, s.Server) }},
		"the wire stalls":  {func(_ *testing.T, _ *natsdtest.Space, w *wire) { w.stall() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := natsdtest.NewSpace(t, "acme")
			w := newWire()
			d := dialer(t, space, func(c *broker.Config) { c.Open = w.open; c.PingInterval = 100 * time.Millisecond })
			c := dial(t, d, broker.Reader(instance))
			if happened(c.Lost()) || c.Err() != nil {
				t.Fatal("lost before anything happened")
			}
			started := time.Now()
			tc.lose(t, space, w)
			await(t, c.Lost(), "the loss is noticed")
			if took := time.Since(started); took < time.Second {
				t.Errorf("it did not wait for a second, only %v", took)
			}
			if !broker.IsAway(c.Err()) || !errors.Is(c.Err(), messages.BrokerAway) {
				t.Errorf("it says %v", c.Err())
			}
			if happened(c.Ended()) {
				t.Error("it has ended by itself; its owner closes it")
			}
		})
	}
}

func TestAShortInterruptionIsNoLoss(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	w := newWire()
	c := dial(t, dialer(t, space, func(c *broker.Config) { c.Open = w.open; c.LostAfter = longEnough }), broker.Reader(instance))
	for round := uint64(1); round <= 3; round++ {
		w.cut()
		natsdtest.Eventually(t, "it is back", func() error {
			if got := c.Reconnects(); got < round || !c.NATS().IsConnected() {
				return fmt.Errorf("%d reconnects", got)
			}
			return nil
		})
	}
	if happened(c.Lost()) {
		t.Error("it counts as lost")
	}
	if c.ServerID() != space.Server.ID() || c.ClientID() == 0 {
		t.Error("it does not know where it is")
	}
}

func TestNothingIsKeptForAServerThatIsAway(t *testing.T) {
	t.Parallel()
	space := natsdtest.NewSpace(t, "acme")
	c := dial(t, dialer(t, space), broker.Writer(instance))
	natsdtest.Stop(t, space.Server)
	await(t, c.Lost(), "it is lost")
	if err := c.NATS().Publish(rows+"uid.x", nil); !broker.IsAway(err) {
		t.Errorf("a write into the void is answered %v", err)
	}
}

func TestDialSaysWhetherTheBrokerIsAway(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	foreign := natsdtest.Load(t, natsdtest.Chain(t, "acme"), "acme")
	keep := newCustody(t).keep

	_, err := dialer(t, space, func(c *broker.Config) { c.Material = foreign }).Dial(t.Context(), broker.Writer(instance), keep)
	if err == nil || broker.IsAway(err) || !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("keys of another chain: %v", err)
	}

	w := newWire()
	w.stall()
	_, err = dialer(t, space, func(c *broker.Config) { c.Open = w.open; c.ConnectTimeout = 100 * time.Millisecond }).Dial(t.Context(), broker.Writer(instance), keep)
	if !broker.IsAway(err) || !errors.Is(err, messages.BrokerAway) {
		t.Errorf("a server that does not answer: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dialer(t, space).Dial(ctx, broker.Writer(instance), keep)
	if !errors.Is(err, context.Canceled) || broker.IsAway(err) {
		t.Errorf("a dial that was given up: %v", err)
	}

	natsdtest.Stop(t, space.Server)
	_, err = dialer(t, space).Dial(t.Context(), broker.Writer(instance), keep)
	if !broker.IsAway(err) || !errors.Is(err, messages.BrokerAway) || !strings.Contains(err.Error(), "cotal:auth-mint:acme") {
		t.Errorf("no server: %v", err)
	}
}

// A dial that is given up while the server keeps silent ends at once and leaves
// nothing behind.
func TestDialEndsWithItsContext(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	w := newWire()
	opened := make(chan struct{})
	d := dialer(t, space, func(c *broker.Config) {
		c.ConnectTimeout = time.Hour
		c.Open = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			conn, err = w.open(ctx, network, address)
			w.stall()
			close(opened)
			return conn, err
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1) // one dial, one answer
	go func() {
		_, err := d.Dial(ctx, broker.Writer(instance), newCustody(t).keep)
		failed <- err
	}()
	await(t, opened, "the socket is open")
	cancel()
	select {
	case err := <-failed:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(longEnough):
		t.Fatal("the dial goes on")
	}
}

func TestNewDialerListsEveryProblem(t *testing.T) {
	_, err := broker.NewDialer(broker.Config{Space: "NOT A SPACE", LostAfter: -1})
	for _, want := range []string{"URL", "space", "material", "negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it does not mention %s: %v", want, err)
		}
	}
	other := natsdtest.Load(t, natsdtest.Chain(t, "other"), "other")
	if _, err := broker.NewDialer(broker.Config{URL: "nats://x", Space: "acme", Material: other}); err == nil {
		t.Error("it takes the keys of another space")
	}
}

// The server's clock may run ahead of ours, or we may have been suspended past a
// renewal: then the server ends the connection first, and it comes back at once
// with a fresh JWT.
func TestAnExpiredConnectionComesBackWithAFreshJWT(t *testing.T) {
	t.Parallel()
	space := natsdtest.NewSpace(t, "acme")
	authorityStream(t, space)
	c := dial(t, dialer(t, space, func(c *broker.Config) { c.StandingLifetime = time.Second; c.LostAfter = longEnough }), broker.Reader(instance))
	natsdtest.Eventually(t, "it outlives two JWTs", func() error {
		if got := c.Reconnects(); got < 2 || !c.NATS().IsConnected() {
			return fmt.Errorf("%d reconnects", got)
		}
		return nil
	})
	if happened(c.Lost()) {
		t.Error("it counts as lost")
	}
}

func TestTheServerNamesOurConnections(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	c := dial(t, dialer(t, space), broker.Callout(3))
	conns, err := space.Server.Native().Connz(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(conns.Conns) != 1 || conns.Conns[0].Name != "cotal:auth-service:acme" || conns.Conns[0].Cid != c.ClientID() {
		t.Errorf("the server lists %+v", conns.Conns)
	}
}
