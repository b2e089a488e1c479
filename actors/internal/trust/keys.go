package trust

import (
	"crypto/ed25519"
	"fmt"
	"io"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/messages"
)

// newKey makes a key pair of the given kind.
func newKey(kind nkeys.PrefixByte) (Key, error) {
	pair, err := nkeys.CreatePair(kind)
	if err != nil {
		return Key{}, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return Key{}, err
	}
	return keyFromSeed(kind, messages.NewSecret(string(seed)))
}

// keyFromSeed derives the public half. Its errors never quote the seed.
func keyFromSeed(kind nkeys.PrefixByte, seed messages.Secret) (Key, error) {
	got, _, err := nkeys.DecodeSeed([]byte(seed.Reveal()))
	if err != nil || got != kind {
		return Key{}, fmt.Errorf("this is not the seed of %s key", kindName(kind))
	}
	var pair nkeys.KeyPair
	if kind == nkeys.PrefixByteCurve {
		pair, err = nkeys.FromCurveSeed([]byte(seed.Reveal()))
	} else {
		pair, err = nkeys.FromSeed([]byte(seed.Reveal()))
	}
	if err != nil {
		return Key{}, fmt.Errorf("this is not the seed of %s key", kindName(kind))
	}
	public, err := pair.PublicKey()
	if err != nil {
		return Key{}, err
	}
	return Key{Public: public, Seed: seed}, nil
}

func kindName(kind nkeys.PrefixByte) string {
	switch kind {
	case nkeys.PrefixByteOperator:
		return "an operator's"
	case nkeys.PrefixByteAccount:
		return "an account's"
	case nkeys.PrefixByteUser:
		return "a user's"
	case nkeys.PrefixByteCurve:
		return "a sealing"
	default:
		return "a known"
	}
}

// signer is a signing key whose private half is derived once, not at every
// signature as the library's own pairs do.
type signer struct {
	public  string
	private ed25519.PrivateKey
	seed    messages.Secret
}

func newSigner(k Key) (*signer, error) {
	_, raw, err := nkeys.DecodeSeed([]byte(k.Seed.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("%s: its seed cannot be read", k.Public)
	}
	return &signer{public: k.Public, private: ed25519.NewKeyFromSeed(raw), seed: k.Seed}, nil
}

func (s *signer) PublicKey() (string, error) { return s.public, nil }

func (s *signer) Sign(input []byte) ([]byte, error) { return ed25519.Sign(s.private, input), nil }

func (s *signer) Seed() ([]byte, error) { return []byte(s.seed.Reveal()), nil }

func (s *signer) PrivateKey() ([]byte, error) {
	return nkeys.Encode(nkeys.PrefixBytePrivate, s.private)
}

func (s *signer) Verify(input []byte, sig []byte) error {
	if !ed25519.Verify(s.private.Public().(ed25519.PublicKey), input, sig) {
		return nkeys.ErrInvalidSignature
	}
	return nil
}

// Wipe does nothing: the key is shared by every signature of its account.
func (s *signer) Wipe() {}

// Format keeps the private half out of whatever prints the key.
func (s *signer) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.public) }

var _ nkeys.KeyPair = (*signer)(nil)

// A signing key seals nothing; these complete nkeys.KeyPair.

func (s *signer) Seal([]byte, string) ([]byte, error) { return nil, nkeys.ErrInvalidNKeyOperation }

func (s *signer) SealWithRand([]byte, string, io.Reader) ([]byte, error) {
	return nil, nkeys.ErrInvalidNKeyOperation
}

func (s *signer) Open([]byte, string) ([]byte, error) { return nil, nkeys.ErrInvalidNKeyOperation }
