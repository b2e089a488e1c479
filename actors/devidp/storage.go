package devidp

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	// maxPending bounds each kind of thing that is remembered.
	maxPending = 1000
	// loginWithin is how long a login may take.
	loginWithin = 10 * time.Minute
)

var (
	errUnknown = errors.New("unknown or expired")
	errNever   = errors.New("not offered")
	errFull    = errors.New("too many at once")
)

// storage remembers, for one run, the logins under way and the access tokens that
// were handed out. A restart forgets them; clients begin anew.
type storage struct {
	client client
	key    signer
	now    func() time.Time

	mu       sync.Mutex
	requests map[string]request
	codes    map[string]string // authorization code → request
	devices  map[string]device // device code → device
	tokens   map[string]token
}

type token struct {
	subject string
	until   time.Time
}

var (
	_ op.Storage                    = (*storage)(nil)
	_ op.DeviceAuthorizationStorage = (*storage)(nil)
)

func newStorage(c client, key signer, now func() time.Time) *storage {
	return &storage{client: c, key: key, now: now, requests: map[string]request{}, codes: map[string]string{},
		devices: map[string]device{}, tokens: map[string]token{}}
}

// forget drops what has run out. The caller holds the lock.
func (s *storage) forget() {
	now := s.now()
	for id, r := range s.requests {
		if now.After(r.until) {
			delete(s.requests, id)
		}
	}
	for code, id := range s.codes {
		if _, known := s.requests[id]; !known {
			delete(s.codes, code)
		}
	}
	for code, d := range s.devices {
		if now.After(d.state.Expires) {
			delete(s.devices, code)
		}
	}
	for id, t := range s.tokens {
		if now.After(t.until) {
			delete(s.tokens, id)
		}
	}
}

func (s *storage) CreateAuthRequest(_ context.Context, asked *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if len(s.requests) >= maxPending {
		return nil, errFull
	}
	r := request{id: rand.Text(), asked: *asked, until: s.now().Add(loginWithin)}
	s.requests[r.id] = r
	return r, nil
}

func (s *storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	r, known := s.requests[id]
	if !known {
		return nil, errUnknown
	}
	return r, nil
}

// logIn completes a login.
func (s *storage) logIn(id, subject string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	r, known := s.requests[id]
	if !known || r.Done() {
		return errUnknown
	}
	r.subject, r.at = subject, s.now()
	s.requests[id] = r
	return nil
}

func (s *storage) SaveAuthCode(_ context.Context, id, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = id
	return nil
}

func (s *storage) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	s.mu.Lock()
	id := s.codes[code]
	s.mu.Unlock()
	return s.AuthRequestByID(ctx, id)
}

func (s *storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, id)
	s.forget() // its code too
	return nil
}

func (s *storage) CreateAccessToken(_ context.Context, r op.TokenRequest) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if len(s.tokens) >= maxPending {
		return "", time.Time{}, errFull
	}
	id, until := rand.Text(), s.now().Add(s.client.life)
	s.tokens[id] = token{subject: r.GetSubject(), until: until}
	return id, until, nil
}

func (s *storage) SigningKey(context.Context) (op.SigningKey, error) { return s.key, nil }

func (s *storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{s.key.SignatureAlgorithm()}, nil
}

func (s *storage) KeySet(context.Context) ([]op.Key, error) { return []op.Key{s.key.public()}, nil }

func (s *storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	if id != s.client.id {
		return nil, errUnknown
	}
	return s.client, nil
}

// SetUserinfoFromScopes names the subject again: the library lets what stands here
// replace what the token said.
func (s *storage) SetUserinfoFromScopes(_ context.Context, info *oidc.UserInfo, subject, _ string, _ []string) error {
	info.Subject = subject
	return nil
}

func (s *storage) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, id, _, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	t, known := s.tokens[id]
	if !known {
		return errUnknown
	}
	info.Subject = t.subject
	return nil
}

func (s *storage) RevokeToken(_ context.Context, id, _, _ string) *oidc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, id)
	return nil
}

func (s *storage) Health(context.Context) error { return nil }

// What follows belongs to what this provider does not offer: secrets of clients,
// refresh tokens, sessions, JWT profiles, introspection, further claims.

func (s *storage) AuthorizeClientIDSecret(context.Context, string, string) error { return errNever }
func (s *storage) CreateAccessAndRefreshTokens(context.Context, op.TokenRequest, string) (string, string, time.Time, error) {
	return "", "", time.Time{}, errNever
}
func (s *storage) TokenRequestByRefreshToken(context.Context, string) (op.RefreshTokenRequest, error) {
	return nil, op.ErrInvalidRefreshToken
}
func (s *storage) GetRefreshTokenInfo(context.Context, string, string) (string, string, error) {
	return "", "", op.ErrInvalidRefreshToken
}
func (s *storage) TerminateSession(context.Context, string, string) error { return nil }
func (s *storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errNever
}
func (s *storage) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return nil, nil
}
func (s *storage) GetKeyByIDAndClientID(context.Context, string, string) (*jose.JSONWebKey, error) {
	return nil, errNever
}
func (s *storage) ValidateJWTProfileScopes(context.Context, string, []string) ([]string, error) {
	return nil, errNever
}
