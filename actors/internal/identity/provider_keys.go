package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/cotal-ai/authplane/messages"
)

const (
	maxProviderKeys = 100
	minRSABits      = 2048
)

// providerKeys keeps a provider's public keys and fetches them when it must: on
// the first token, when they are old, and when a token names a key that is not
// among them. All fetches share one flight and one cool-down.
type providerKeys struct {
	config ProviderConfig
	// fetch is nil where the keys are pinned.
	fetch func(context.Context) ([]jose.JSONWebKey, error)

	mu     sync.Mutex
	keys   []jose.JSONWebKey
	got    time.Time     // when keys were fetched
	tried  time.Time     // when the last fetch ended
	failed error         // how the last fetch ended
	flight chan struct{} // closed when the running fetch ends; nil if none runs
}

func pinnedKeys(keys []jose.JSONWebKey) *providerKeys { return &providerKeys{keys: keys} }

func fetchedKeys(config ProviderConfig) *providerKeys {
	return &providerKeys{config: config, fetch: newKeyFetcher(config).fetch}
}

// find gives the keys that may have signed a token with this header: usually one.
func (k *providerKeys) find(ctx context.Context, h proofHeader) (*oidc.StaticKeySet, error) {
	if k.fetch == nil {
		return choose(k.keys, h)
	}
	set, err := k.known(h)
	if err == nil && !k.due() {
		return set, nil
	}
	fetched := k.refresh(ctx, err != nil)
	// Keys at hand go on working although the provider cannot be reached.
	if again, err := k.known(h); err == nil || fetched == nil {
		return again, err
	}
	return nil, messages.ProviderUnreachable.From(fetched)
}

// known chooses among the keys at hand, unless they are too old to be used.
func (k *providerKeys) known(h proofHeader) (*oidc.StaticKeySet, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.config.Now().Sub(k.got) >= k.config.StaleFor {
		return choose(nil, h)
	}
	return choose(k.keys, h)
}

// due reports whether keys at hand should be fetched anew. After a fetch that
// failed it is not due again at once, so that a provider that hangs does not slow
// down everybody whose key is known.
func (k *providerKeys) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.config.Now()
	return now.Sub(k.got) >= k.config.RefreshAfter && now.Sub(k.tried) >= k.config.RefreshAfter
}

// refresh fetches the keys and answers how that ended. While another fetch runs it
// waits for that one, or for nothing if the caller can do without; in the
// cool-down it answers how the last one ended.
func (k *providerKeys) refresh(ctx context.Context, wait bool) error {
	k.mu.Lock()
	if flight := k.flight; flight != nil {
		k.mu.Unlock()
		if !wait {
			return nil
		}
		return k.join(ctx, flight)
	}
	if since := k.config.Now().Sub(k.tried); !k.tried.IsZero() && since >= 0 && since < k.config.CoolDown {
		defer k.mu.Unlock()
		return k.failed
	}
	flight := make(chan struct{}) // closed, never sent on
	k.flight = flight
	k.mu.Unlock()

	return k.fly(ctx, flight)
}

// fly fetches the keys. It outlives the caller that began it, up to its timeout,
// since others wait on it; and it ends the flight even if the fetch panics.
func (k *providerKeys) fly(ctx context.Context, flight chan struct{}) (err error) {
	fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.config.Timeout)
	defer cancel()
	began := k.config.Now()
	var keys []jose.JSONWebKey
	err = errors.New("the fetch broke off")
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if err == nil {
			k.keys, k.got = keys, began
		}
		k.tried, k.failed, k.flight = k.config.Now(), err, nil
		close(flight)
	}()
	keys, err = k.fetch(fetching)
	return err
}

func (k *providerKeys) join(ctx context.Context, flight <-chan struct{}) error {
	select {
	case <-flight:
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.failed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// choose picks by key id; a token without one is served if exactly one key fits
// its algorithm.
func choose(keys []jose.JSONWebKey, h proofHeader) (*oidc.StaticKeySet, error) {
	var fit []crypto.PublicKey
	for _, key := range keys {
		if (h.kid == "" || key.KeyID == h.kid) && fits(key, h.algorithm) {
			fit = append(fit, key.Key)
		}
	}
	if len(fit) == 0 || h.kid == "" && len(fit) > 1 {
		return nil, messages.ProofInvalid.Because("the provider has no such key")
	}
	return &oidc.StaticKeySet{PublicKeys: fit}, nil
}

// fits reports whether a key may sign with an algorithm.
func fits(key jose.JSONWebKey, algorithm string) bool {
	if key.Algorithm != "" && key.Algorithm != algorithm {
		return false
	}
	switch public := key.Key.(type) {
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	case *ecdsa.PublicKey:
		return algorithm == "ES256" && public.Curve == elliptic.P256()
	case *rsa.PublicKey:
		return (algorithm == "RS256" || algorithm == "PS256") && public.N.BitLen() >= minRSABits
	default:
		return false
	}
}

// readKeySet reads a JWKS. Keys of kinds we do not use are passed over, as
// RFC 7517 asks; private and symmetric ones are never used.
func readKeySet(document []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, errors.New("not a JSON Web Key Set")
	}
	if len(set.Keys) > maxProviderKeys {
		return nil, errors.New("too many keys")
	}
	keys := make([]jose.JSONWebKey, 0, len(set.Keys))
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(raw); err == nil && key.IsPublic() && key.Valid() && (key.Use == "" || key.Use == "sig") {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no key that can verify a signature")
	}
	return keys, nil
}
