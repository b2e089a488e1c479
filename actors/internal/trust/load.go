package trust

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Load reads the daemon's material of a space and checks it whole: every JWT of
// the chain, every seed against the public key it must belong to. Its error is
// messages.KeysUnusable and lists every problem at once. It never makes anything
// anew: material that is torn, of another chain or of another space is refused.
func Load(ctx context.Context, store SecretStore, space string) (*Material, error) {
	return newLoader(ctx, store, space).whole()
}

// LoadWithoutSystem is Load where SYS belongs to somebody else, who runs the servers:
// its keys are not read, whether they are there or not, and the chain need not have
// the account. Nobody can be minted in SYS then.
func LoadWithoutSystem(ctx context.Context, store SecretStore, space string) (*Material, error) {
	l := newLoader(ctx, store, space)
	l.noSystem = true
	return l.whole()
}

func newLoader(ctx context.Context, store SecretStore, space string) *loader {
	return &loader{ctx: ctx, store: store, m: &Material{
		Space: space, Accounts: map[Account]string{}, Signing: map[Account]Key{}, signers: map[string]*signer{},
	}}
}

// loader gathers the material and whatever is wrong with it.
type loader struct {
	ctx      context.Context
	store    SecretStore
	m        *Material
	claims   map[Account]*jwt.AccountClaims
	problems []error
	// noSystem leaves out SYS.
	noSystem bool
}

// whole loads everything, or says all that is wrong.
func (l *loader) whole() (*Material, error) {
	l.load()
	if len(l.problems) > 0 {
		return nil, messages.KeysUnusable.From(fmt.Errorf("space %s: %w", l.m.Space, errors.Join(l.problems...)))
	}
	return l.m, nil
}

func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Errorf(format, args...))
}

func (l *loader) load() {
	doc, err := l.document()
	if err != nil {
		l.problem("%s: %w", chainName, err)
		return // nothing to hold the seeds against
	}
	l.accounts(doc)
	l.scopes()
	l.authorization(doc)
	l.signing()
	l.users(doc)
	l.keyring()
	l.ownerSecret(doc)
}

// document reads chain.json and makes sure that it is of this space.
func (l *loader) document() (document, error) {
	data, err := l.store.Get(l.ctx, chainName)
	if err != nil {
		if errors.Is(err, ErrNoSecret) {
			err = fmt.Errorf("%w; no chain was made here, or that was interrupted", err)
		}
		return document{}, err
	}
	doc, err := parseDocument([]byte(data.Reveal()))
	if err != nil {
		return document{}, err
	}
	if doc.Space != l.m.Space {
		return document{}, fmt.Errorf("it is of space %q", doc.Space)
	}
	if names.CheckUID(doc.InstallID) != nil || doc.Created.IsZero() {
		return document{}, errors.New("it does not name an installation")
	}
	l.m.InstallID, l.m.Created = doc.InstallID, doc.Created
	return doc, nil
}

// accounts checks that one operator vouches for all five accounts, or for all but SYS.
func (l *loader) accounts(doc document) {
	l.claims = map[Account]*jwt.AccountClaims{}
	operator, err := jwt.DecodeOperatorClaims(doc.Operator)
	if err != nil {
		l.problem("%s: the operator's JWT does not hold", chainName)
		return
	}
	for _, a := range accounts {
		if a == SYS && l.noSystem {
			continue
		}
		claims, err := jwt.DecodeAccountClaims(doc.Accounts[a])
		switch {
		case err != nil:
			l.problem("%s: the JWT of %s does not hold", chainName, a)
		case !operator.DidSign(claims):
			l.problem("%s: %s is not of this operator", chainName, a)
		case claims.Name != a.nameIn(doc.Space):
			l.problem("%s: %s is called %q, it is of another space", chainName, a, claims.Name)
		default:
			l.claims[a] = claims
			l.m.Accounts[a] = claims.Subject
		}
	}
	if sys := l.m.Accounts[SYS]; sys != "" && operator.SystemAccount != sys {
		l.problem("%s: SYS is not this operator's system account", chainName)
	}
}

// scopes reads the two scoped keys of SYS, where that is ours.
func (l *loader) scopes() {
	claims, ok := l.claims[SYS]
	if !ok {
		return
	}
	roles := map[string]string{}
	for key, scope := range claims.SigningKeys {
		if user, ok := scope.(*jwt.UserScope); ok {
			roles[user.Role] = key
		}
	}
	l.m.Observer = l.key(observerName, nkeys.PrefixByteAccount, roles[observerRole])
	l.m.Evictor = l.key(evictorName, nkeys.PrefixByteAccount, roles[evictorRole])
}

// authorization checks that AUTH exempts exactly the users of the document, lets
// the callout place users in DATA alone, and seals what it asks.
func (l *loader) authorization(doc document) {
	claims, ok := l.claims[AUTH]
	if !ok {
		return
	}
	auth := claims.Authorization
	listed, ours := slices.Sorted(slices.Values(auth.AuthUsers)), slices.Sorted(slices.Values(append(doc.Callouts, doc.Presence)))
	if len(doc.Callouts) == 0 || !slices.Equal(listed, ours) {
		l.problem("%s: AUTH exempts other users from the callout than the chain has", chainName)
	}
	if data := l.m.Accounts[DATA]; data != "" && !slices.Equal(auth.AllowedAccounts, jwt.StringList{data}) {
		l.problem("%s: AUTH lets users be placed elsewhere than in DATA", chainName)
	}
	l.m.XKey = l.key(xkeyName, nkeys.PrefixByteCurve, auth.XKey)
}

// signing reads the key that signs for each account.
func (l *loader) signing() {
	for _, a := range slices.Sorted(maps.Keys(signingNames)) {
		claims, ok := l.claims[a]
		if !ok {
			continue
		}
		keys := claims.SigningKeys.Keys()
		if len(keys) != 1 {
			l.problem("%s: %s has %d signing keys, not one", chainName, a, len(keys))
			continue
		}
		l.m.Signing[a] = l.key(signingNames[a], nkeys.PrefixByteAccount, keys[0])
	}
}

func (l *loader) users(doc document) {
	for i, public := range doc.Callouts {
		l.m.Callouts = append(l.m.Callouts, l.key(calloutName(i+1), nkeys.PrefixByteUser, public))
	}
	l.m.Presence = l.key(presenceName, nkeys.PrefixByteUser, doc.Presence)
}

// key reads a seed and makes sure that it belongs to the public key.
func (l *loader) key(name string, kind nkeys.PrefixByte, public string) Key {
	secret, err := l.store.Get(l.ctx, name)
	if err != nil {
		l.problem("%s: %w", name, err)
		return Key{}
	}
	key, err := keyFromSeed(kind, messages.NewSecret(strings.TrimSpace(secret.Reveal())))
	switch {
	case err != nil:
		l.problem("%s: %w", name, err)
		return Key{}
	case key.Public != public:
		l.problem("%s: it is the seed of %s, the chain names %q: it belongs to another chain", name, key.Public, public)
		return Key{}
	}
	if kind == nkeys.PrefixByteAccount {
		signer, err := newSigner(key)
		if err != nil {
			l.problem("%s: %w", name, err)
			return Key{}
		}
		l.m.signers[key.Public] = signer
	}
	return key
}

// keyring reads the document of bearer keys. It changes with every rotation, so
// nothing but its own contents can be held against it.
func (l *loader) keyring() {
	stored, err := l.store.Get(l.ctx, keyringName)
	if err == nil {
		_, err = identity.OpenKeyring(l.m.Space, stored)
	}
	if err != nil {
		l.problem("%s: %w", keyringName, err)
	}
	l.m.Keyring = stored
}

func (l *loader) ownerSecret(doc document) {
	text, err := l.store.Get(l.ctx, ownerSecretName)
	if err != nil {
		l.problem("%s: %w", ownerSecretName, err)
		return
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSpace(text.Reveal()))
	secret := messages.NewSecret(string(raw))
	switch {
	case err != nil || len(raw) != identity.MinOwnerSecret:
		l.problem("%s: it is not %d bytes in base64url", ownerSecretName, identity.MinOwnerSecret)
	case hashOf(secret) != doc.OwnerSecretHash:
		l.problem("%s: it is not the one the chain was made with", ownerSecretName)
	default:
		l.m.OwnerSecret = secret
	}
}
