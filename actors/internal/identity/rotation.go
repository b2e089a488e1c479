package identity

import (
	"slices"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const (
	// KeyCacheLife is how long others may keep the JWKS.
	KeyCacheLife = 300 * time.Second
	// MaxBearerLife is the longest life of a bearer.
	MaxBearerLife = 900 * time.Second
	// KeyOverlap is how long a superseded key must stay published: whatever it
	// signed last has ended, and whoever cached the JWKS has fetched it anew.
	KeyOverlap = KeyCacheLife + MaxBearerLife
)

// Rotate begins a rotation: the document it gives has one more key, published and
// not yet signing. Store it, and let every process of the space open it, before
// the next step. Refused with KeyInUse while another key waits to become active.
func (k *Keyring) Rotate(now time.Time) (messages.Secret, error) {
	keys := slices.Clone(k.keys)
	if slices.ContainsFunc(keys, inState(KeyPublished)) {
		return messages.Secret{}, messages.KeyInUse.Because("a key waits to become active, activate that one")
	}
	for len(keys) >= maxKeys {
		oldest := slices.IndexFunc(keys, inState(KeyRetired))
		if oldest < 0 {
			return messages.Secret{}, messages.KeyInUse.Because("%d keys still verify, retire the superseded ones", len(keys))
		}
		keys = slices.Delete(keys, oldest, oldest+1)
	}
	return encodeKeyring(k.space, append(keys, newSigningKey(now)))
}

// Activate lets the published key sign, and supersedes the one that did. Refused
// with KeyInUse if none is published, and with KeyTooEarly until it has been
// published for KeyCacheLife: others could still hold a JWKS without it.
func (k *Keyring) Activate(now time.Time) (messages.Secret, error) {
	keys := slices.Clone(k.keys)
	next := slices.IndexFunc(keys, inState(KeyPublished))
	if next < 0 {
		return messages.Secret{}, messages.KeyInUse.Because("no key is published, rotate first")
	}
	if err := notBefore(keys[next].Published.Add(KeyCacheLife), now); err != nil {
		return messages.Secret{}, err
	}
	keys[k.active].State, keys[k.active].Superseded = KeySuperseded, wholeSecond(now)
	keys[next].State, keys[next].Activated = KeyActive, wholeSecond(now)
	return encodeKeyring(k.space, keys)
}

// Retire ends a superseded key: it verifies nothing more and its private half is
// gone from the document. Refused with KeyTooEarly until it has been superseded
// for KeyOverlap, with KeyInUse in any other state, and with KeyUnknown if there
// is no such key.
func (k *Keyring) Retire(kid string, now time.Time) (messages.Secret, error) {
	keys := slices.Clone(k.keys)
	at := slices.IndexFunc(keys, func(key signingKey) bool { return key.KID == kid })
	if at < 0 {
		return messages.Secret{}, messages.KeyUnknown
	}
	if state := keys[at].State; state != KeySuperseded {
		return messages.Secret{}, messages.KeyInUse.Because("the key is %s, only a superseded one can be retired", state)
	}
	if err := notBefore(keys[at].Superseded.Add(KeyOverlap), now); err != nil {
		return messages.Secret{}, err
	}
	keys[at].State, keys[at].Retired, keys[at].private = KeyRetired, wholeSecond(now), nil
	return encodeKeyring(k.space, keys)
}

func inState(state KeyState) func(signingKey) bool {
	return func(key signingKey) bool { return key.State == state }
}

func notBefore(due, now time.Time) error {
	if now.Before(due) {
		return messages.KeyTooEarly.Because("due at %s", due.UTC().Format(time.RFC3339))
	}
	return nil
}
