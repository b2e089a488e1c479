package trust

import (
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// accounts in the order in which they are made and written.
var accounts = []Account{SYS, AUTH, DATA, CTRL, SVC}

// chain is a whole chain while it is made: the only moment at which all of its
// keys are in one memory.
type chain struct {
	doc               document
	operator, signing Key
	identities        map[Account]Key
	accountSigning    map[Account]Key
	observer, evictor Key
	callouts          []Key
	presence, xkey    Key
	keyring           messages.Secret
	ownerSecret       messages.Secret
}

// keyMaker makes keys until one fails.
type keyMaker struct{ err error }

func (k *keyMaker) make(kind nkeys.PrefixByte) Key {
	if k.err != nil {
		return Key{}
	}
	var key Key
	key, k.err = newKey(kind)
	return key
}

// newChain makes every key, then every JWT.
func newChain(space string, callouts int, now time.Time) (*chain, error) {
	var maker keyMaker
	c := &chain{
		operator: maker.make(nkeys.PrefixByteOperator), signing: maker.make(nkeys.PrefixByteOperator),
		identities: map[Account]Key{}, accountSigning: map[Account]Key{},
		observer: maker.make(nkeys.PrefixByteAccount), evictor: maker.make(nkeys.PrefixByteAccount),
		presence: maker.make(nkeys.PrefixByteUser), xkey: maker.make(nkeys.PrefixByteCurve),
		ownerSecret: identity.NewOwnerSecret(),
		doc: document{V: documentVersion, Space: space, InstallID: names.NewUID(),
			Created: now.UTC().Truncate(time.Second), Accounts: map[Account]string{}},
	}
	for _, a := range accounts {
		c.identities[a] = maker.make(nkeys.PrefixByteAccount)
		if a != SYS {
			c.accountSigning[a] = maker.make(nkeys.PrefixByteAccount)
		}
	}
	for range callouts {
		key := maker.make(nkeys.PrefixByteUser)
		c.callouts = append(c.callouts, key)
		c.doc.Callouts = append(c.doc.Callouts, key.Public)
	}
	c.doc.Presence = c.presence.Public
	c.doc.OwnerSecretHash = hashOf(c.ownerSecret)
	if maker.err != nil {
		return nil, maker.err
	}
	var err error
	if c.keyring, err = identity.GenerateKeyring(space, now); err != nil {
		return nil, err
	}
	return c, c.sign()
}

// sign makes the operator's and the accounts' JWTs.
func (c *chain) sign() error {
	operator := jwt.NewOperatorClaims(c.operator.Public)
	operator.Name = "authplane_" + c.doc.Space
	operator.SigningKeys.Add(c.signing.Public)
	operator.SystemAccount = c.identities[SYS].Public
	pair, err := newSigner(c.operator)
	if err != nil {
		return err
	}
	if c.doc.Operator, err = operator.Encode(pair); err != nil {
		return err
	}
	pair, err = newSigner(c.signing)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		claims, err := c.account(a)
		if err != nil {
			return err
		}
		if c.doc.Accounts[a], err = claims.Encode(pair); err != nil {
			return err
		}
	}
	return nil
}

// account says what each account is.
func (c *chain) account(a Account) (*jwt.AccountClaims, error) {
	claims := jwt.NewAccountClaims(c.identities[a].Public)
	claims.Name = a.nameIn(c.doc.Space)
	if key, ok := c.accountSigning[a]; ok {
		claims.SigningKeys.Add(key.Public)
	}
	switch a {
	case SYS:
		claims.SigningKeys.AddScopedSigner(scoped(c.observer, observerRole, c.observed()...))
		claims.SigningKeys.AddScopedSigner(scoped(c.evictor, evictorRole, "$SYS.REQ.SERVER.*.KICK"))
	case AUTH:
		claims.Authorization.AuthUsers.Add(c.doc.Callouts...)
		claims.Authorization.AuthUsers.Add(c.presence.Public)
		claims.Authorization.AllowedAccounts.Add(c.identities[DATA].Public)
		claims.Authorization.XKey = c.xkey.Public
	case DATA:
		claims.Limits.JetStreamLimits = unlimitedStorage()
		claims.Mappings = silence()
	case CTRL:
		claims.Limits.JetStreamLimits = unlimitedStorage()
		claims.Exports.Add(c.exports()...)
	case SVC:
		imports, err := c.imports()
		if err != nil {
			return nil, err
		}
		claims.Imports.Add(imports...)
		claims.Mappings = silence()
	}
	return claims, nil
}

// silence keeps what an account asks of the system from ever reaching it, whatever
// its users may publish: a denied subject is not enough, since whoever may answer
// requests may answer on any subject that a request named as its reply.
func silence() jwt.Mapping {
	return jwt.Mapping{"$SYS.>": {{Subject: "authplane.nowhere.>", Weight: 100}}}
}

// The roles of the scoped signing keys of SYS.
const (
	observerRole = "observer"
	evictorRole  = "evictor"
)

// observed is what the observer may ask: who the servers are, and which
// connections the accounts have that an eviction is about.
func (c *chain) observed() []string {
	return observed(c.identities[DATA].Public, c.identities[CTRL].Public, c.identities[AUTH].Public)
}

func observed(accounts ...string) []string {
	subjects := []string{"$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.VARZ"}
	for _, a := range accounts {
		subjects = append(subjects, "$SYS.REQ.ACCOUNT."+a+".CONNZ")
	}
	return subjects
}

// scoped is a signing key whose users may publish exactly these subjects, and
// hear the inbox that is named as they are.
func scoped(key Key, role string, publish ...string) *jwt.UserScope {
	scope := jwt.NewUserScope()
	scope.Key = key.Public
	scope.Role = role
	scope.Template.Pub.Allow.Add(publish...)
	scope.Template.Sub.Allow.Add("_INBOX_{{name()}}.>")
	return scope
}

func unlimitedStorage() jwt.JetStreamLimits {
	return jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
}

// railExport names the one export there is so far; the record subjects of
// endpoints will stand beside it.
const railExport = "control-rail"

// exports is what CTRL offers, each only to accounts with a token of it.
func (c *chain) exports() []*jwt.Export {
	return []*jwt.Export{{Name: railExport, Subject: jwt.Subject(RailSubject(c.doc.Space)), Type: jwt.Service, TokenReq: true}}
}

// imports is what SVC takes of it. Share has the server tell who calls.
func (c *chain) imports() ([]*jwt.Import, error) {
	pair, err := newSigner(c.identities[CTRL])
	if err != nil {
		return nil, err
	}
	var imports []*jwt.Import
	for _, export := range c.exports() {
		activation := jwt.NewActivationClaims(c.identities[SVC].Public)
		activation.Name = export.Name
		activation.ImportSubject = export.Subject
		activation.ImportType = export.Type
		token, err := activation.Encode(pair)
		if err != nil {
			return nil, err
		}
		imports = append(imports, &jwt.Import{Name: export.Name, Subject: export.Subject, Account: c.identities[CTRL].Public,
			Token: token, Type: export.Type, Share: true})
	}
	return imports, nil
}
