package face

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// A bearer is valid in whole seconds, for no longer than was asked, and never
// longer than its proof.
func TestTheWindowOfABearer(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 700_000_000, time.FixedZone("east", 3600))
	from := now.UTC().Truncate(time.Second)
	b := &Bridge{Now: func() time.Time { return now }}
	for _, c := range []struct {
		name      string
		ttl       time.Duration
		proofEnds time.Time
		life      time.Duration // zero: refused
	}{
		{"nothing asked, no proof to end", 0, time.Time{}, MaxLife},
		{"as asked", 10 * time.Second, time.Time{}, 10 * time.Second},
		{"asked for more than the proof has", MaxLife, from.Add(100 * time.Second), 100 * time.Second},
		{"a proof that ends within a second", MaxLife, from.Add(100*time.Second + 999*time.Millisecond), 100 * time.Second},
		{"asked for less", 10 * time.Second, from.Add(100 * time.Second), 10 * time.Second},
		{"the last second", MaxLife, from.Add(time.Second), time.Second},
		{"a proof that ends in this second", MaxLife, now.Add(200 * time.Millisecond), 0},
		{"a proof that has ended, within the tolerance", MaxLife, from.Add(-3 * time.Second), 0},
	} {
		w, err := b.window(c.ttl, c.proofEnds)
		if c.life == 0 {
			if !errors.Is(err, messages.ProofExpired) {
				t.Errorf("%s: got %v to %v, %v", c.name, w.from, w.to, err)
			}
			continue
		}
		if err != nil || !w.from.Equal(from) || w.to.Sub(w.from) != c.life {
			t.Errorf("%s: got %v to %v, %v", c.name, w.from, w.to, err)
		}
	}
}

// Where bearers are to be short, a longer wish is cut, a person's and a machine's.
func TestABearerLivesNoLongerThanTheLongest(t *testing.T) {
	w := newWorld(t)
	w.loopback.config.Bridge.Longest = 60 * time.Second
	w.grant("user-1", "laptop")
	_, secret := w.machine("user-2", "robot")
	owner := strings.TrimSpace(w.grant("user-2", "other"))
	for _, c := range []struct {
		body string
		life time.Duration
	}{
		{`{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop"}`, 60 * time.Second},
		{`{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop","ttl_seconds":900}`, 60 * time.Second},
		{`{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop","ttl_seconds":30}`, 30 * time.Second},
		{`{"owner":"` + owner + `","actor":"robot","actor_token":"` + secret + `"}`, 60 * time.Second},
	} {
		a := w.do("POST", w.url+"/exchange", c.body)
		bearer, err := w.keyring.Verify(a.text("token"), time.Now())
		if life := bearer.Expires.Sub(bearer.IssuedAt); err != nil || life != c.life {
			t.Errorf("it lives %v, want %v: %d %v", life, c.life, a.status, err)
		}
	}
}

// A proof that has just ended leaves nothing behind.
func TestALapsedProofIsNotEnrolled(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	// Within the tolerance the provider's token still verifies, but it has no second left.
	a := w.do("POST", w.url+"/exchange", `{"id_token":"`+w.idToken("user-1", -2*time.Second)+`","actor":"laptop"}`)
	if a.status != 401 || a.reason() != "proof.expired" || w.rows.written(t, "head.*.*") != 0 {
		t.Fatalf("got %d %s, %d heads", a.status, a.body, w.rows.written(t, "head.*.*"))
	}
}
