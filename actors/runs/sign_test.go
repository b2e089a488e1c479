package runs

import (
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

// Whenever an attempt is signed for, it is signed as of when it was reserved: the same
// question never has two credentials.
func TestAnAttemptIsSignedAsOfItsReservation(t *testing.T) {
	m := natsdtest.Load(t, natsdtest.Chain(t, "acme"), "acme")
	r, err := New(Config{Material: m, Stream: stream.Config{Space: "acme"}, Standing: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	reserved := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	key := func() string {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, _ := pair.PublicKey()
		return public
	}
	got := reservation{attempt: messages.RunAttempt{Run: "run-00000000000000000000000000000001", Driver: key(), Mediator: key(), ReservedAt: reserved, Expires: reserved.Add(time.Hour)}}
	first, err := r.sign(got)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := r.sign(got); err != nil || second != first {
		t.Errorf("signed again it is another one: %v", err)
	}
	for _, c := range []messages.RunCredential{first.Driver, first.Mediator} {
		claims, err := jwt.DecodeUserClaims(c.JWT)
		if err != nil || claims.IssuedAt != reserved.Unix() || claims.Expires != got.attempt.Expires.Unix() || claims.Subject != c.Key {
			t.Errorf("%+v, %v", claims, err)
		}
	}
}

func TestOnlyLifetimesThatMayBe(t *testing.T) {
	m := natsdtest.Load(t, natsdtest.Chain(t, "acme"), "acme")
	for _, standing := range []time.Duration{0, 59 * time.Second, 24*time.Hour + time.Second, time.Minute + time.Millisecond} {
		if _, err := New(Config{Material: m, Stream: stream.Config{Space: "acme"}, Standing: standing}); err == nil {
			t.Errorf("%s is taken", standing)
		}
	}
}
