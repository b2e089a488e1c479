package devidp

import (
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// request is one login under way, or one that is done. It is never changed:
// completing it makes another one.
type request struct {
	id      string
	asked   oidc.AuthRequest
	subject string // empty until somebody logged in
	at      time.Time
	until   time.Time
}

var _ op.AuthRequest = request{}

func (r request) GetID() string                      { return r.id }
func (r request) GetACR() string                     { return "" }
func (r request) GetAMR() []string                   { return nil }
func (r request) GetAudience() []string              { return []string{r.asked.ClientID} }
func (r request) GetAuthTime() time.Time             { return r.at }
func (r request) GetClientID() string                { return r.asked.ClientID }
func (r request) GetNonce() string                   { return r.asked.Nonce }
func (r request) GetRedirectURI() string             { return r.asked.RedirectURI }
func (r request) GetResponseType() oidc.ResponseType { return r.asked.ResponseType }
func (r request) GetResponseMode() oidc.ResponseMode { return r.asked.ResponseMode }
func (r request) GetScopes() []string                { return r.asked.Scopes }
func (r request) GetState() string                   { return r.asked.State }
func (r request) GetSubject() string                 { return r.subject }
func (r request) Done() bool                         { return r.subject != "" }
func (r request) GetCodeChallenge() *oidc.CodeChallenge {
	if r.asked.CodeChallenge == "" {
		return nil
	}
	return &oidc.CodeChallenge{Challenge: r.asked.CodeChallenge, Method: r.asked.CodeChallengeMethod}
}

// client is the one client of a provider: a native one without a secret, which the
// standard lets redirect to the loopback, at any port.
type client struct {
	id   string
	life time.Duration
}

var _ op.Client = client{}

func (c client) GetID() string { return c.id }
func (c client) RedirectURIs() []string {
	return []string{"http://127.0.0.1/callback", "http://[::1]/callback", "http://localhost/callback"}
}
func (c client) PostLogoutRedirectURIs() []string    { return nil }
func (c client) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }
func (c client) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodNone }
func (c client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (c client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeDeviceCode}
}
func (c client) LoginURL(id string) string            { return loginPath + "?id=" + id }
func (c client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeBearer }
func (c client) IDTokenLifetime() time.Duration       { return c.life }
func (c client) DevMode() bool                        { return false }
func (c client) IsScopeAllowed(string) bool           { return false }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return false }
func (c client) ClockSkew() time.Duration             { return 0 }

//lint:ignore ST1003 the library names it so
func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string     { return sameScopes }
func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string { return sameScopes }

func sameScopes(scopes []string) []string { return scopes }
