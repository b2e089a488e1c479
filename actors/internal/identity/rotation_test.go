package identity_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

func TestRotation(t *testing.T) {
	first, _ := newKeyring(t)
	old := first.Keys()[0].KID
	signed, err := first.Sign(sample())
	must(t, signed, err)

	step := func(stored messages.Secret, err error) *identity.Keyring { return open(t, must(t, stored, err)) }
	published := step(first.Rotate(noon))
	activation := noon.Add(300 * time.Second)

	refused := func(what string, want messages.Error, stored messages.Secret, err error) {
		t.Helper()
		if !errors.Is(err, want) || !stored.IsZero() {
			t.Errorf("%s: got %v", what, err)
		}
	}
	doc, err := first.Activate(activation)
	refused("activate before rotate", messages.KeyInUse, doc, err)
	doc, err = published.Rotate(noon)
	refused("rotate twice", messages.KeyInUse, doc, err)
	doc, err = published.Activate(activation.Add(-time.Second))
	refused("activate while caches lack the key", messages.KeyTooEarly, doc, err)
	doc, err = published.Retire(old, noon.Add(time.Hour))
	refused("retire the active key", messages.KeyInUse, doc, err)
	doc, err = published.Retire("nobody", noon.Add(time.Hour))
	refused("retire an unknown key", messages.KeyUnknown, doc, err)

	turned := step(published.Activate(activation))
	retirement := activation.Add(1200 * time.Second)
	doc, err = turned.Retire(old, retirement.Add(-time.Second))
	refused("retire while bearers live", messages.KeyTooEarly, doc, err)
	doc, err = turned.Retire(turned.Keys()[1].KID, retirement)
	refused("retire the new active key", messages.KeyInUse, doc, err)

	// A process that opened the published document understands one that is ahead.
	b := sample()
	b.IssuedAt, b.Expires = activation, activation.Add(time.Minute)
	ahead, err := turned.Sign(b)
	mustVerify(t, published, must(t, ahead, err), activation)
	// What the old key signed holds until it is retired, and no longer.
	mustVerify(t, turned, signed, noon)
	retired := step(turned.Retire(old, retirement))
	if _, err := retired.Verify(signed.Reveal(), noon); !errors.Is(err, messages.ProofInvalid) {
		t.Errorf("a bearer of a retired key: %v", err)
	}
	mustVerify(t, retired, ahead, activation)
	if got := retired.Keys(); got[0].State != identity.KeyRetired || got[1].State != identity.KeyActive || !got[0].Retired.Equal(retirement) {
		t.Errorf("%+v", got)
	}
	doc, err = retired.Retire(old, retirement.Add(time.Hour))
	refused("retire twice", messages.KeyInUse, doc, err)
}

// A restart between any two steps finds a document in which whatever was signed
// still verifies, because the step was stored before anything was signed under it.
func TestRotationCrash(t *testing.T) {
	first, stored := newKeyring(t)
	signed, err := first.Sign(sample())
	must(t, signed, err)
	if _, err := first.Rotate(noon); err != nil { // made, never stored
		t.Fatal(err)
	}
	mustVerify(t, open(t, stored), signed, noon)
}

// Whatever order operators try the steps in, every bearer verifies to its end, and
// old records do not pile up.
func TestRotationNeverBreaksABearer(t *testing.T) {
	type issued struct {
		token messages.Secret
		ends  time.Time
	}
	rapid.Check(t, func(r *rapid.T) {
		ring, _ := newKeyring(t)
		now, live := noon, []issued{}
		keep := func(stored messages.Secret, err error) {
			if err != nil {
				if !errors.Is(err, messages.KeyInUse) && !errors.Is(err, messages.KeyTooEarly) {
					r.Fatal(err)
				}
				return
			}
			ring = open(t, stored)
		}
		r.Repeat(map[string]func(*rapid.T){
			"wait": func(r *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(r, "seconds")) * time.Second)
			},
			"sign": func(r *rapid.T) {
				b := sample()
				b.IssuedAt, b.Expires = now, now.Add(identity.MaxBearerLife)
				token, err := ring.Sign(b)
				live = append(live, issued{must(t, token, err), b.Expires})
			},
			"rotate":   func(*rapid.T) { keep(ring.Rotate(now)) },
			"activate": func(*rapid.T) { keep(ring.Activate(now)) },
			"retire": func(r *rapid.T) {
				keep(ring.Retire(rapid.SampledFrom(ring.Keys()).Draw(r, "key").KID, now))
			},
			"": func(*rapid.T) {
				live = slices.DeleteFunc(live, func(one issued) bool { return !now.Before(one.ends) })
				for _, one := range live {
					if _, err := ring.Verify(one.token.Reveal(), now); err != nil {
						r.Fatalf("a bearer that ends at %s does not verify at %s: %v", one.ends, now, err)
					}
				}
				if len(ring.Keys()) > 16 {
					r.Fatal("records pile up")
				}
			},
		})
	})
}
