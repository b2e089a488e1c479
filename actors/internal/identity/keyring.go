package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// KeyState says where a signing key stands in its rotation.
type KeyState string

const (
	// KeyPublished keys are in the JWKS and verify, but do not sign yet: caches get
	// the time to learn of them.
	KeyPublished KeyState = "published"
	// KeyActive is the one key that signs.
	KeyActive KeyState = "active"
	// KeySuperseded keys no longer sign; what they signed still verifies.
	KeySuperseded KeyState = "superseded"
	// KeyRetired keys verify nothing and are no longer published. Their record stays.
	KeyRetired KeyState = "retired"
)

// KeyInfo is what may be shown of a signing key. A time is zero as long as its
// state was not reached. Times are whole seconds.
type KeyInfo struct {
	KID        string    `json:"kid"`
	State      KeyState  `json:"state"`
	Published  time.Time `json:"published"`
	Activated  time.Time `json:"activated"`
	Superseded time.Time `json:"superseded"`
	Retired    time.Time `json:"retired"`
}

// Keyring holds the bearer signing keys of one space. It never changes: a step of
// a rotation gives a new document, which is stored first and then opened, so that
// no bearer is signed by a key that was not kept. It may be used by many
// goroutines at once.
type Keyring struct {
	space  string
	issuer string
	keys   []signingKey
	active int
	// byHeader finds a key by the encoded header that bearers of ours carry, byKID
	// by its name. Retired keys are in neither.
	byHeader map[string]ed25519.PublicKey
	byKID    map[string]ed25519.PublicKey
	// header is the encoded header of what is signed now, with its dot.
	header string
	jwks   []byte
}

type signingKey struct {
	KeyInfo
	public  ed25519.PublicKey
	private ed25519.PrivateKey // nil once retired
}

// Issuer is the `iss` of every bearer of a space.
func Issuer(space string) string { return "urn:cotal:auth:" + space }

// JWKS is the public half of every key that verifies, as RFC 7517 has it. It may
// be cached for KeyCacheLife. The caller must not change it.
func (k *Keyring) JWKS() []byte { return k.jwks }

// Space names the space whose keys these are.
func (k *Keyring) Space() string { return k.space }

// Keys lists every key with its state, oldest first.
func (k *Keyring) Keys() []KeyInfo {
	list := make([]KeyInfo, len(k.keys))
	for i, key := range k.keys {
		list[i] = key.KeyInfo
	}
	return list
}

// newKeyring prepares everything that signing and verifying would otherwise do
// again each time. The keys were checked.
func newKeyring(space string, keys []signingKey) *Keyring {
	k := &Keyring{space: space, issuer: Issuer(space), keys: keys,
		byHeader: make(map[string]ed25519.PublicKey, len(keys)), byKID: make(map[string]ed25519.PublicKey, len(keys))}
	set := jwkSet{Keys: make([]jwk, 0, len(keys))}
	for i, key := range keys {
		if key.State == KeyRetired {
			continue
		}
		header := encodeHeader(key.KID)
		k.byHeader[header], k.byKID[key.KID] = key.public, key.public
		set.Keys = append(set.Keys, publicJWK(key))
		if key.State == KeyActive {
			k.active, k.header = i, header+"."
		}
	}
	k.jwks, _ = json.Marshal(set) // strings only: cannot fail
	return k
}

type jwkSet struct {
	Keys []jwk `json:"keys"`
}

type jwk struct {
	KTY string `json:"kty"`
	CRV string `json:"crv"`
	X   string `json:"x"`
	KID string `json:"kid"`
	ALG string `json:"alg"`
	Use string `json:"use"`
}

func publicJWK(key signingKey) jwk {
	return jwk{KTY: "OKP", CRV: "Ed25519", X: base64.RawURLEncoding.EncodeToString(key.public),
		KID: key.KID, ALG: algorithm, Use: "sig"}
}

// thumbprint names a key as RFC 7638 does, over its required members in order.
func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// GenerateKeyring makes the first document of a space: one key, active at once,
// since nobody can have cached anything yet. Call it once in the life of a space.
func GenerateKeyring(space string, now time.Time) (messages.Secret, error) {
	key := newSigningKey(now)
	key.State, key.Activated = KeyActive, key.Published
	return encodeKeyring(space, []signingKey{key})
}

func newSigningKey(now time.Time) signingKey {
	private := ed25519.NewKeyFromSeed(randomBytes(ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	return signingKey{
		KeyInfo: KeyInfo{KID: thumbprint(public), State: KeyPublished, Published: wholeSecond(now)},
		public:  public, private: private,
	}
}

func wholeSecond(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }
