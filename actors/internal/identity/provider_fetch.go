package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// maxProviderBody bounds what a provider may answer, in bytes.
const maxProviderBody = 1 << 20

// checkURL allows https, and http only to a loopback address written as digits: a
// name could resolve to anywhere.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("not a URL without credentials and fragment")
	}
	if u.Scheme == "https" {
		return nil
	}
	if address, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && err == nil && address.IsLoopback() {
		return nil
	}
	return errors.New("a provider's URL must be https, or http on a loopback address")
}

// keyFetcher asks a provider for its keys: no redirects, bounded bodies, checked
// URLs, and no connection kept.
type keyFetcher struct {
	issuer, jwksURL string
	client          *http.Client
}

func newKeyFetcher(config ProviderConfig) *keyFetcher {
	client := http.Client{}
	if config.HTTP != nil {
		client = *config.HTTP
	}
	client.Timeout = 0 // the flight's context has the deadline
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Transport = bounded{client.Transport}
	return &keyFetcher{issuer: config.Issuer, jwksURL: config.JWKSURL, client: &client}
}

func (f *keyFetcher) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	where := f.jwksURL
	if where == "" {
		var err error
		if where, err = f.discover(ctx); err != nil {
			return nil, fmt.Errorf("discover the identity provider: %w", err)
		}
	}
	keys, err := f.fetchKeys(ctx, where)
	if err != nil {
		return nil, fmt.Errorf("fetch the identity provider's keys: %w", err)
	}
	return keys, nil
}

// discover finds the keys' URL. The issuer that the document names must be ours.
func (f *keyFetcher) discover(ctx context.Context) (string, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, f.client), f.issuer)
	if err != nil {
		return "", err
	}
	var found struct {
		JWKSURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil {
		return "", errors.New("no jwks_uri")
	}
	return found.JWKSURL, checkURL(found.JWKSURL)
}

func (f *keyFetcher) fetchKeys(ctx context.Context, where string) ([]jose.JSONWebKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return readKeySet(body)
}

// bounded is a transport that fails a body above maxProviderBody instead of
// cutting it, refuses every answer but 200, and leaves no connection behind.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	request = request.Clone(request.Context())
	request.Close = true
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxProviderBody)
	return response, nil
}
