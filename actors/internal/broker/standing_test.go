package broker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

// shortLives makes standing users so short-lived that a test sees renewals: the
// server counts in whole seconds.
func shortLives(c *broker.Config) { c.StandingLifetime = 4 * time.Second }

// run runs a standing until the test ends it; the error comes on the channel.
func run(t *testing.T, s *broker.Standing) (stop func(), ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1) // one run, one end
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(cancel)
	return cancel, done
}

func awaitErr(t *testing.T, ended <-chan error, what string) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(longEnough):
		t.Fatalf("never: %s", what)
		return nil
	}
}

func TestNoRequestFailsAcrossRenewals(t *testing.T) {
	t.Parallel()
	space := natsdtest.NewSpace(t, "acme")
	authorityStream(t, space)
	kept := newCustody(t)
	s, err := dialer(t, space, shortLives).Stand(t.Context(), broker.Reader(instance), kept.keep, broker.Use{})
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := run(t, s)

	const renewals = 5
	var asked atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for s.Current().Generation() <= renewals && len(ended) == 0 {
				<-pace.C
				err := s.With(func(c *broker.Conn) error {
					_, err := c.NATS().Request("$JS.API.STREAM.INFO."+stream, nil, 5*time.Second)
					return err
				})
				asked.Add(1)
				if err != nil {
					t.Errorf("request %d: %v", asked.Load(), err)
					return
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d requests over %d connections", asked.Load(), len(kept.all()))
	if renewed := len(kept.all()) - 1; renewed < renewals {
		t.Errorf("it was renewed only %d times", renewed)
	}
	stop()
	if err := awaitErr(t, ended, "the run ends with its context"); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range kept.all() {
		if !happened(c.Ended()) {
			t.Errorf("connection %d is left open", c.Generation())
		}
	}
}

// What a subscription accepted on the old connection is finished on it.
func TestRetirementFinishesWhatWasAccepted(t *testing.T) {
	t.Parallel()
	space := natsdtest.NewSpace(t, "acme")
	var heard atomic.Int64
	subs := map[*broker.Conn]*nats.Subscription{}
	var mu sync.Mutex
	d := dialer(t, space, shortLives)
	s, err := d.Stand(t.Context(), broker.Presence(instance), newCustody(t).keep, broker.Use{
		Prove: func(_ context.Context, c *broker.Conn) error {
			sub, err := c.NATS().QueueSubscribe("cotal.acme.presence.*", "one", func(*nats.Msg) { heard.Add(1) })
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
			if sub == nil || happened(c.Ended()) {
				t.Error("a connection was retired that is not there")
				return
			}
			drained := sub.StatusChanged(nats.SubscriptionClosed)
			if err := sub.Drain(); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-drained:
			case <-ctx.Done():
				t.Error("the drain took too long")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := run(t, s)
	speaker := dial(t, dialer(t, space), broker.Presence(another))
	var said int64
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for s.Current().Generation() <= 3 && len(ended) == 0 {
		<-pace.C
		if err := speaker.NATS().Publish(broker.PresenceSubject("acme", another), nil); err != nil {
			t.Fatal(err)
		}
		said++
		if err := speaker.NATS().Flush(); err != nil {
			t.Fatal(err)
		}
	}
	natsdtest.Eventually(t, "everything said was heard once", func() error {
		if got := heard.Load(); got != said {
			return errors.New("not yet")
		}
		return nil
	})
	stop()
	if err := awaitErr(t, ended, "the run ends"); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnyFailureOfARenewalEndsTheRun(t *testing.T) {
	t.Parallel()
	broken := errors.New("it does not work")
	for name, tc := range map[string]struct {
		keep func(*custody) broker.Keep
		use  broker.Use
	}{
		"the next one is not proved": {
			keep: func(c *custody) broker.Keep { return c.keep },
			use: broker.Use{Prove: func(_ context.Context, c *broker.Conn) error {
				if c.Generation() > 1 {
					return broken
				}
				return nil
			}},
		},
		"custody refuses the next one": {
			keep: func(c *custody) broker.Keep {
				return func(conn *broker.Conn) error {
					if conn.Generation() > 1 {
						return broken
					}
					return c.keep(conn)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := natsdtest.NewSpace(t, "acme")
			kept := newCustody(t)
			s, err := dialer(t, space, shortLives).Stand(t.Context(), broker.Reader(instance), tc.keep(kept), tc.use)
			if err != nil {
				t.Fatal(err)
			}
			_, ended := run(t, s)
			err = awaitErr(t, ended, "the run ends")
			if !errors.Is(err, broken) || broker.IsAway(err) || !strings.Contains(err.Error(), "cotal:auth-reader:acme") {
				t.Errorf("got %v", err)
			}
			if s.Current().Generation() != 1 || happened(s.Current().Lost()) {
				t.Error("the old connection did not stay")
			}
			for _, c := range kept.all()[1:] {
				if !happened(c.Ended()) {
					t.Error("the failed connection is left open")
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARenewalWithoutAServerIsAway(t *testing.T) {
	t.Parallel()
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space, shortLives, func(c *broker.Config) { c.LostAfter = time.Hour })
	s, err := d.Stand(t.Context(), broker.Reader(instance), newCustody(t).keep, broker.Use{})
	if err != nil {
		t.Fatal(err)
	}
	_, ended := run(t, s)
	natsdtest.Stop(t, space.Server)
	if err := awaitErr(t, ended, "the run ends"); !broker.IsAway(err) || !errors.Is(err, messages.BrokerAway) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheRunEndsWithTheConnection(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	s, err := dialer(t, space).Stand(t.Context(), broker.Reader(instance), newCustody(t).keep, broker.Use{})
	if err != nil {
		t.Fatal(err)
	}
	_, ended := run(t, s)
	s.Current().Sever()
	if err := awaitErr(t, ended, "the run ends"); !errors.Is(err, broker.ErrSevered) {
		t.Errorf("got %v", err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("it ran twice")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCloseEndsTheRunAndWaitsForThoseInside(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	s, err := dialer(t, space).Stand(t.Context(), broker.Reader(instance), newCustody(t).keep, broker.Use{})
	if err != nil {
		t.Fatal(err)
	}
	_, ended := run(t, s)
	inside, leave := make(chan struct{}), make(chan struct{})
	var user sync.WaitGroup
	user.Go(func() {
		err := s.With(func(c *broker.Conn) error {
			close(inside)
			<-leave
			if happened(c.Ended()) {
				return errors.New("it was closed under me")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	await(t, inside, "somebody uses it")
	closed := make(chan error, 1) // one close, one end
	go func() { closed <- s.Close(t.Context()) }()
	if err := awaitErr(t, ended, "the run ends"); err != nil {
		t.Error(err)
	}
	close(leave)
	if err := awaitErr(t, closed, "it closes"); err != nil {
		t.Error(err)
	}
	user.Wait()
	if err := s.With(func(*broker.Conn) error { return nil }); !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("it can be used after it was closed: %v", err)
	}
	if !happened(s.Current().Ended()) {
		t.Error("it has not ended")
	}
}

func TestStandRefusesWhatCannotBeProved(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	kept := newCustody(t)
	broken := errors.New("it does not work")
	_, err := dialer(t, space).Stand(t.Context(), broker.Reader(instance), kept.keep, broker.Use{
		Prove: func(context.Context, *broker.Conn) error { return broken },
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if len(kept.all()) != 1 || !happened(kept.all()[0].Ended()) {
		t.Error("the connection is left open")
	}
}
