package connect

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/messages"
)

// AccountKey is an account and the key that signs for it.
type AccountKey struct {
	// Account is the account's public identity.
	Account string
	// Signing is the seed of one of its signing keys. That of its identity is
	// refused: it has no place in a running service.
	Signing messages.Secret
}

// Answerer mints users, and signs and seals answers, with keys that are kept ready.
type Answerer struct {
	auth, data *signer
	scratch    scratch
}

// NewAnswerer makes an answerer for servers in operator mode. It signs answers for
// AUTH and users for DATA. The two must differ: a user in AUTH could answer
// connects itself, and the server would let it in.
func NewAnswerer(auth, data AccountKey) (*Answerer, error) {
	a, err := newAccountSigner(auth)
	if err != nil {
		return nil, fmt.Errorf("the signing key of AUTH: %w", err)
	}
	d, err := newAccountSigner(data)
	if err != nil {
		return nil, fmt.Errorf("the signing key of DATA: %w", err)
	}
	if a.account == d.account || a.public == d.public || a.public == d.account || d.public == a.account {
		return nil, messages.Malformed.Because("AUTH and DATA must be two accounts with a signing key each")
	}
	return &Answerer{auth: a, data: d}, nil
}

// NewConfiguredAnswerer makes an answerer for servers whose own configuration holds
// the accounts and an auth_callout block. There the one issuer of that block signs
// both users and answers, and accounts go by their names in the configuration:
// authAccount is the block's own, dataAccount the one that principals are placed in.
func NewConfiguredAnswerer(issuer messages.Secret, authAccount, dataAccount string) (*Answerer, error) {
	if authAccount == "" || dataAccount == "" || authAccount == dataAccount {
		return nil, messages.Malformed.Because("the callout's account and that of the principals must be two")
	}
	auth, err := newSigner(issuer)
	if err != nil {
		return nil, fmt.Errorf("the issuer of the callout: %w", err)
	}
	auth.account, auth.named = authAccount, true
	data := *auth
	data.account = dataAccount
	return &Answerer{auth: auth, data: &data}, nil
}

// Admit answers a request with the user it asked for: subject is the key the server
// made up, the name is `<owner>-<actor>`, and the account is DATA. The result is
// sealed for the server that asked.
func (a *Answerer) Admit(r Request, adm Admission, now time.Time) ([]byte, error) {
	user := a.scratch.borrow()
	defer a.scratch.giveBack(user)
	err := a.mint(user, &userToken{
		id: r.ID, subject: r.UserNkey, account: a.data.account, named: a.data.named, principal: adm.Principal, uid: adm.UID,
		permissions: adm.Permissions, issued: now, expires: adm.Expires,
	})
	if err != nil {
		return nil, fmt.Errorf("admit %s: %w", adm.Principal, err)
	}
	return a.answer(&r, "jwt", *user, now)
}

// Deny answers a request with a refusal. It refuses to state what is no fact about
// the proof or the principal: such a request goes unanswered, see KindOf.
func (a *Answerer) Deny(r Request, why error, now time.Time) ([]byte, error) {
	if KindOf(why) != messages.Denied {
		return nil, messages.InternalFault.Because("%s is not a reason to deny a connect", messages.Describe(why).Reason)
	}
	return a.answer(&r, "error", denialText(r.ID, messages.Describe(why)), now)
}

// answer signs one of the two kinds of answer, in the field of that name, and seals it.
func (a *Answerer) answer(r *Request, field string, value []byte, now time.Time) ([]byte, error) {
	if r.shared == nil {
		return nil, messages.InternalFault.Because("the request was not opened here")
	}
	claims, token := a.scratch.borrow(), a.scratch.borrow()
	defer a.scratch.giveBack(claims)
	defer a.scratch.giveBack(token)
	*claims = answerClaims(*claims, a.auth, r, field, value, now)
	*token = a.auth.sign(*token, *claims)
	return r.shared.seal(*token), nil
}

// mint signs a user. Only DATA has users of ours: the server accepts one in AUTH
// itself, so that this is the only thing that keeps them out.
func (a *Answerer) mint(into *[]byte, u *userToken) error {
	switch {
	case u.account != a.data.account:
		return messages.InternalFault.Because("a user may be minted in DATA alone")
	case u.principal.IsZero() || u.uid == "":
		return messages.InternalFault.Because("a user needs a principal and its incarnation")
	case !u.expires.After(u.issued):
		return messages.InternalFault.Because("the user would be expired, or never expire")
	case !u.bounded():
		return messages.InternalFault.Because("an empty list would mean everything")
	}
	claims := a.scratch.borrow()
	defer a.scratch.giveBack(claims)
	*claims = u.appendClaims(*claims, a.data.public)
	*into = a.data.sign(*into, *claims)
	return nil
}

// signer signs for an account.
type signer struct {
	account string
	named   bool // the account is a name in the server's configuration
	public  string
	private ed25519.PrivateKey
}

func newAccountSigner(k AccountKey) (*signer, error) {
	if !nkeys.IsValidPublicAccountKey(k.Account) {
		return nil, messages.Malformed.Because("the account is not an account's public key")
	}
	s, err := newSigner(k.Signing)
	if err != nil {
		return nil, err
	}
	if s.public == k.Account {
		return nil, messages.Malformed.Because("the seed is that of the account's identity")
	}
	s.account = k.Account
	return s, nil
}

func newSigner(seed messages.Secret) (*signer, error) {
	kind, raw, err := nkeys.DecodeSeed([]byte(seed.Reveal()))
	if err != nil || kind != nkeys.PrefixByteAccount || len(raw) != ed25519.SeedSize {
		return nil, messages.Malformed.Because("not an account's seed")
	}
	private := ed25519.NewKeyFromSeed(raw)
	public, err := nkeys.Encode(nkeys.PrefixByteAccount, private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, messages.Malformed.Because("not an account's seed")
	}
	return &signer{public: string(public), private: private}, nil
}
