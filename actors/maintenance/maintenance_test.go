package maintenance

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const instance = "aaaaaaaaaaaaaaaaaaaaaaaaaa"

func who(actor string) messages.Principal {
	return messages.Principal{Owner: "u_" + strings.Repeat("a", 26), Actor: actor}
}

func TestWhatAnEvictionIsAbout(t *testing.T) {
	many := make([]messages.Principal, messages.MaxEvictFamily+1)
	for i := range many {
		many[i] = who(strings.Repeat("x", i%64+1))
	}
	many[64].Actor = "y"
	for what, c := range map[string]struct {
		people []messages.Principal
		good   bool
	}{
		"nobody": {}, "somebody": {[]messages.Principal{who("a")}, true}, "as many as may be": {many[:messages.MaxEvictFamily], true},
		"one more": {many, false}, "one twice": {[]messages.Principal{who("a"), who("b"), who("a")}, false}, "no name": {[]messages.Principal{{}}, false},
	} {
		err := CheckEviction(messages.EvictFamily{Endpoint: "svc_a", Instance: instance, Principals: c.people})
		if c.good != (err == nil) || err != nil && !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := CheckEviction(messages.EvictFamily{Endpoint: "a.b", Instance: instance, Principals: many[:1]}); !errors.Is(err, messages.Malformed) {
		t.Errorf("an endpoint of two tokens: %v", err)
	}
}

// Nobody is gone who holds what cannot be taken back, and nobody of whom it is unproved.
func TestVerdicts(t *testing.T) {
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	user, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	family := []ledger.InstanceCredential{
		{ID: "server-" + user + "-1", Holder: who("held"), State: ledger.CredentialRevoked, Expires: now.Add(time.Hour)},
		{ID: "server-" + user + "-2", Holder: who("held"), State: ledger.CredentialActive, Expires: now.Add(time.Minute)},
		{ID: "server-" + user + "-3", Holder: who("over"), State: ledger.CredentialActive, Expires: now.Add(-tolerance)},
		{ID: "server-" + user + "-4", Holder: who("late"), State: ledger.CredentialActive, Expires: now.Add(-tolerance + time.Second)},
		{ID: "c-1", Holder: who("bearer"), State: ledger.CredentialActive, Expires: now.Add(time.Hour)},
	}
	people := []messages.Target{{Principal: who("held")}, {Principal: who("over")}, {Principal: who("late")}, {Principal: who("bearer")}}
	want := []time.Time{now.Add(time.Hour + tolerance), {}, now.Add(time.Second), {}}
	for i, v := range verdicts(evict.Outcome{Eviction: messages.EvictionSwept}, nil, people, family, now) {
		if v.Principal != people[i].Principal || !v.Until.Equal(want[i]) || v.Gone != want[i].IsZero() || v.Gone == (v.Note != "") {
			t.Errorf("verdict %+v", v)
		}
	}
	for _, v := range verdicts(evict.Outcome{}, &evict.Unproved{Doubts: []string{"n1 is silent"}}, people, family, now) {
		if v.Gone || v.Note == "" {
			t.Errorf("unproved, and the verdict is %+v", v)
		}
	}
	err = checkFamily(family, []messages.Principal{who("held"), who("stranger")})
	if !errors.Is(err, messages.FamilyOutsider) || !strings.Contains(err.Error(), "stranger") || strings.Contains(err.Error(), "held") {
		t.Errorf("an outsider: %v", err)
	}
}
