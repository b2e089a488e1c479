package callout

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/supervisor"
)

// plainly starts two processes, of two responders each, that all hear everything.
func plainly(t *testing.T) (one, other *stage) {
	t.Helper()
	one = &stage{TB: t, space: natsdtest.NewSpace(t, "acme")}
	other = &stage{TB: t, space: one.space}
	for _, s := range []*stage{one, other} {
		s.run(2, &Once{})
	}
	one.becomes(4, 0)
	return one, other
}

// heard waits until the process has decided so many connects.
func (s *stage) heard(n int) {
	s.Helper()
	natsdtest.Eventually(s.TB, fmt.Sprintf("%d connects decided", n), func() error {
		if got := len(s.denials.List()); got != n {
			return errors.New(strconv.Itoa(got))
		}
		return nil
	})
}

// Each process decides every connect, and decides it once.
func TestPlainlyEachProcessDecidesOnce(t *testing.T) {
	t.Parallel()
	one, other := plainly(t)
	const connects = 20
	for i := range connects {
		one.knock()
		one.heard(i + 1)
		other.heard(i + 1)
	}
	var ids []string
	for _, d := range one.denials.List() {
		ids = append(ids, d.ID)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != connects {
		t.Errorf("it decided %v", ids)
	}
}

// A process that stands still costs nobody a connect, at no time: the other answers.
func TestPlainlyTheFirstAnswerWins(t *testing.T) {
	t.Parallel()
	one, other := plainly(t)
	one.answer.Store(func(func(any)) {}) // it hears and says nothing
	for range 5 {
		one.isRefused()
	}
	other.heard(5)
	// Nor does the loss of a connection, of the two that each has.
	if _, err := other.tree.Kill("1", supervisor.Disconnect); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		one.isRefused()
	}
}

// isRefused connects, and is told no: silence would end otherwise.
func (s *stage) isRefused() {
	s.Helper()
	nc, err := nats.Connect(s.space.URL(), nats.UserCredentials(trust.SentinelCreds(s.space.Dir)), nats.Token("x"), nats.NoReconnect(), nats.Timeout(longEnough))
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		s.Errorf("it is told %v", err)
	}
}

func TestOnceForgetsTheOldest(t *testing.T) {
	var o Once
	for i := range maxMet + 1 {
		if !o.first(strconv.Itoa(i)) || o.first(strconv.Itoa(i)) {
			t.Fatalf("request %d was not met once", i)
		}
	}
	if len(o.met) != maxMet || len(o.ring) != maxMet {
		t.Errorf("it remembers %d and %d", len(o.met), len(o.ring))
	}
	if !o.first("0") || o.first(strconv.Itoa(maxMet)) || o.first("2") {
		t.Error("it does not forget the oldest")
	}
}
