package identity_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// playedProvider is a provider on the loopback that a test can break.
type playedProvider struct {
	*httptest.Server
	discoveries, fetches, kept atomic.Int64

	mu   sync.Mutex
	keys []byte
	// jwks, when set, answers for the keys; discovery likewise for the document.
	jwks, discovery http.HandlerFunc
}

func playProvider(t *testing.T, keys ...providerKey) *playedProvider {
	t.Helper()
	p := &playedProvider{keys: jwks(t, keys...)}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		p.discoveries.Add(1)
		p.handler(&p.discovery, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/jwks"})
		})(w, r)
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		p.handler(&p.jwks, func(w http.ResponseWriter, _ *http.Request) {
			p.mu.Lock()
			defer p.mu.Unlock()
			_, _ = w.Write(p.keys)
		})(w, r)
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.Close {
			p.kept.Add(1)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		if p.kept.Load() > 0 {
			t.Error("a connection to the provider is kept")
		}
		p.Close()
	})
	return p
}

func (p *playedProvider) handler(special *http.HandlerFunc, standard http.HandlerFunc) http.HandlerFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *special != nil {
		return *special
	}
	return standard
}

// breakKeys lets handler answer for the keys from now on; nil mends them.
func (p *playedProvider) breakKeys(handler http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jwks = handler
}

func (p *playedProvider) setKeys(t *testing.T, keys ...providerKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = jwks(t, keys...)
}

func down(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }

// wallClock is a clock that a test moves.
type wallClock struct{ at atomic.Int64 }

func newClock() *wallClock {
	c := &wallClock{}
	c.at.Store(noon.UnixNano())
	return c
}

func (c *wallClock) now() time.Time           { return time.Unix(0, c.at.Load()) }
func (c *wallClock) advance(by time.Duration) { c.at.Add(int64(by)) }
func (c *wallClock) claims(i string) string   { return text(c.raw(i)) }
func (c *wallClock) raw(i string) map[string]any {
	claims := with(proofClaims(), "iss", i)
	claims["iat"], claims["exp"] = c.now().Unix(), c.now().Unix()+3600
	return claims
}

func TestProviderByDiscovery(t *testing.T) {
	key := ecKey(t, "one")
	idp, clock := playProvider(t, key), newClock()
	p := fetching(t, idp, clock)
	if idp.discoveries.Load()+idp.fetches.Load() != 0 {
		t.Error("the provider is asked before any token came")
	}
	for range 10 {
		if _, err := p.Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if d, f := idp.discoveries.Load(), idp.fetches.Load(); d != 1 || f != 1 {
		t.Errorf("%d discoveries and %d fetches for one key", d, f)
	}
}

func fetching(t *testing.T, idp *playedProvider, clock *wallClock) *identity.Provider {
	t.Helper()
	p, err := identity.NewProvider(identity.ProviderConfig{Issuer: idp.URL, Audience: anAudience, Now: clock.now, Timeout: time.Minute})
	return must(t, p, err)
}

func TestProviderLearnsNewKeysWithinItsCoolDown(t *testing.T) {
	one, two := edKey(t, "one"), edKey(t, "two")
	idp, clock := playProvider(t, one), newClock()
	p := fetching(t, idp, clock)
	verify := func(key providerKey) error {
		_, err := p.Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil))
		return err
	}
	if err := verify(one); err != nil {
		t.Fatal(err)
	}
	idp.setKeys(t, one, two)
	for range 100 { // a flood of unknown keys costs no fetch
		if err := verify(two); !errors.Is(err, messages.ProofInvalid) {
			t.Fatalf("in the cool-down: %v", err)
		}
	}
	if n := idp.fetches.Load(); n != 1 {
		t.Errorf("%d fetches in the cool-down", n)
	}
	clock.advance(5 * time.Second)
	if err := verify(two); err != nil {
		t.Errorf("after the cool-down: %v", err)
	}
	if err := verify(edKey(t, "three")); !errors.Is(err, messages.ProofInvalid) {
		t.Errorf("an unknown key: %v", err)
	}
	if n := idp.fetches.Load(); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}
}

func TestProviderWithdrawnKeyIsForgotten(t *testing.T) {
	one, two := edKey(t, "one"), edKey(t, "two")
	idp, clock := playProvider(t, one, two), newClock()
	p := fetching(t, idp, clock)
	token := func() string { return one.sign(t, clock.claims(idp.URL), nil) }
	if _, err := p.Verify(t.Context(), token()); err != nil {
		t.Fatal(err)
	}
	idp.setKeys(t, two)
	clock.advance(5 * time.Minute)
	if _, err := p.Verify(t.Context(), token()); !errors.Is(err, messages.ProofInvalid) {
		t.Errorf("a withdrawn key is honoured after the refresh: %v", err)
	}
}

func TestProviderDown(t *testing.T) {
	one, two := edKey(t, "one"), edKey(t, "two")
	idp, clock := playProvider(t, one), newClock()
	idp.breakKeys(down)
	p := fetching(t, idp, clock)
	verify := func(key providerKey) error {
		_, err := p.Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil))
		return err
	}
	for range 10 {
		if err := verify(one); !errors.Is(err, messages.ProviderUnreachable) || errors.Is(err, messages.ProofInvalid) {
			t.Fatalf("never reached: %v", err)
		}
	}
	if n := idp.fetches.Load(); n != 1 {
		t.Errorf("%d fetches from a provider that is down, in one cool-down", n)
	}
	idp.breakKeys(nil)
	clock.advance(5 * time.Second)
	if err := verify(one); err != nil {
		t.Fatalf("after it came back: %v", err)
	}

	idp.breakKeys(down)
	clock.advance(4*time.Hour - time.Minute)
	for range 10 { // one attempt to refresh, none that would hold up the others
		if err := verify(one); err != nil {
			t.Fatalf("a cached key while it is down: %v", err)
		}
	}
	if n := idp.fetches.Load(); n != 3 {
		t.Errorf("%d fetches, want 3", n)
	}
	clock.advance(5 * time.Second) // the cool-down is over, the time between refreshes is not
	if err := verify(one); err != nil {
		t.Fatal(err)
	}
	if n := idp.fetches.Load(); n != 3 {
		t.Errorf("%d fetches after the cool-down, want 3", n)
	}
	if err := verify(two); !errors.Is(err, messages.ProviderUnreachable) {
		t.Errorf("an unknown key while it is down: %v", err)
	}
	clock.advance(55 * time.Second)
	if err := verify(one); !errors.Is(err, messages.ProviderUnreachable) {
		t.Errorf("a key past its stale use: %v", err)
	}
}

func TestProviderBadAnswers(t *testing.T) {
	key := edKey(t, "one")
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }
	for what, spoil := range map[string]func(*playedProvider){
		"keys redirect":       func(p *playedProvider) { p.jwks = redirect },
		"keys of 5 MB":        func(p *playedProvider) { p.jwks = large(p.keys) },
		"keys not JSON":       func(p *playedProvider) { p.jwks = answer("<html>") },
		"keys and an error":   func(p *playedProvider) { p.jwks = failing(p.keys) },
		"keys empty":          func(p *playedProvider) { p.jwks = answer(`{"keys":[]}`) },
		"keys down":           func(p *playedProvider) { p.jwks = down },
		"101 keys":            func(p *playedProvider) { p.jwks = answer(`{"keys":[{}` + strings.Repeat(",{}", 100) + `]}`) },
		"discovery redirects": func(p *playedProvider) { p.discovery = redirect },
		"discovery not JSON":  func(p *playedProvider) { p.discovery = answer("<html>") },
		"discovery of 5 MB": func(p *playedProvider) {
			p.discovery = large([]byte(`{"issuer":"` + p.URL + `","jwks_uri":"` + p.URL + `/jwks"}`))
		},
		"discovery of another": func(p *playedProvider) {
			p.discovery = answer(`{"issuer":"https://other.test","jwks_uri":"` + p.URL + `/jwks"}`)
		},
		"discovery to http": func(p *playedProvider) {
			p.discovery = answer(`{"issuer":"` + p.URL + `","jwks_uri":"http://idp.example.test/jwks"}`)
		},
		"discovery to nowhere": func(p *playedProvider) { p.discovery = answer(`{"issuer":"` + p.URL + `"}`) },
	} {
		idp, clock := playProvider(t, key), newClock()
		spoil(idp)
		_, err := fetching(t, idp, clock).Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil))
		if !errors.Is(err, messages.ProviderUnreachable) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// failing says what is wanted, with a status that says it is not meant.
func failing(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(body)
	}
}

// everywhere answers for every host as one server does.
type everywhere struct{ host string }

func (e everywhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", e.host
	return http.DefaultTransport.RoundTrip(r)
}

// A document may not lead to keys that travel in the clear, even where they could be had.
func TestProviderDiscoveryCannotLeaveHTTPS(t *testing.T) {
	key := edKey(t, "one")
	idp, clock := playProvider(t, key), newClock()
	for where, want := range map[string]error{"https://keys.example.test/jwks": nil, "http://keys.example.test/jwks": messages.ProviderUnreachable} {
		idp.discovery = answer(`{"issuer":"` + idp.URL + `","jwks_uri":"` + where + `"}`)
		p, err := identity.NewProvider(identity.ProviderConfig{Issuer: idp.URL, Audience: anAudience, Now: clock.now,
			HTTP: &http.Client{Transport: everywhere{strings.TrimPrefix(idp.URL, "http://")}}})
		_, err = must(t, p, err).Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil))
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: got %v, want %v", where, err, want)
		}
	}
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func large(document []byte) http.HandlerFunc {
	return answer(string(document) + strings.Repeat(" ", 5<<20))
}

func TestProviderNeverHangs(t *testing.T) {
	key := edKey(t, "one")
	idp, clock := playProvider(t, key), newClock()
	release := make(chan struct{})
	idp.breakKeys(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	p, err := identity.NewProvider(identity.ProviderConfig{Issuer: idp.URL, Audience: anAudience, Now: clock.now, Timeout: 50 * time.Millisecond})
	began := time.Now()
	_, err = must(t, p, err).Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil))
	if !errors.Is(err, messages.ProviderUnreachable) || time.Since(began) > 30*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// Everybody who needs the keys at once waits for one fetch, which does not end
// because the one who began it goes away; who waits may go away at any time.
func TestProviderOneFlight(t *testing.T) {
	key := edKey(t, "one")
	idp, clock := playProvider(t, key), newClock()
	arrived, release := make(chan struct{}), make(chan struct{})
	idp.breakKeys(func(w http.ResponseWriter, r *http.Request) {
		close(arrived) // a second fetch would panic here
		<-release
		_, _ = w.Write(jwks(t, key))
	})
	p := fetching(t, idp, clock)
	token := key.sign(t, clock.claims(idp.URL), nil)

	first, leave := context.WithCancel(t.Context())
	results := make(chan error, 21) // one slot for each that asks
	ask := func(ctx context.Context) {
		go func() { _, err := p.Verify(ctx, token); results <- err }()
	}
	ask(first)
	<-arrived
	leave()
	impatient, goAway := context.WithCancel(t.Context())
	goAway()
	if _, err := p.Verify(impatient, token); !errors.Is(err, messages.ProviderUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("who went away while waiting got %v", err)
	}
	for range 20 {
		ask(t.Context())
	}
	close(release)
	for range 21 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := idp.fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// A refresh that hangs holds up at most the one who began it.
func TestProviderRefreshHoldsUpNobodyElse(t *testing.T) {
	key := edKey(t, "one")
	idp, clock := playProvider(t, key), newClock()
	p := fetching(t, idp, clock)
	verify := func() error {
		_, err := p.Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil))
		return err
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	arrived, release := make(chan struct{}), make(chan struct{})
	idp.breakKeys(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		down(w, r)
	})
	clock.advance(time.Hour)
	done := make(chan error, 1) // the result of the one that refreshes
	go func() { done <- verify() }()
	<-arrived
	if err := verify(); err != nil {
		t.Error(err)
	}
	select {
	case <-done:
		close(release)
		t.Fatal("it waited for the one who refreshes")
	default:
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Keys of kinds nobody here uses do not spoil the others.
func TestProviderPassesOverForeignKeys(t *testing.T) {
	key := edKey(t, "one")
	idp, clock := playProvider(t, key), newClock()
	own := strings.TrimPrefix(string(jwks(t, key)), `{"keys":[`)
	idp.breakKeys(answer(`{"keys":[{"kty":"QUANTUM"},7,{"kty":"oct","k":"AAAA","kid":"one"},{"kty":"OKP","crv":"X25519","x":"AA"},` + own))
	if _, err := fetching(t, idp, clock).Verify(t.Context(), key.sign(t, clock.claims(idp.URL), nil)); err != nil {
		t.Error(err)
	}
}
