package connect

import (
	"crypto/rand"
	"sync"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/nacl/box"
	"golang.org/x/crypto/nacl/secretbox"

	"github.com/cotal-ai/authplane/messages"
)

// maxSharedKeys bounds how many servers' keys are kept ready: more than any
// cluster has, and 64 KiB at most. Past it an arbitrary one makes room.
const maxSharedKeys = 1024

// sharedKey is what our sealing key and a server's have in common.
type sharedKey [32]byte

// sharedKeys derives the shared key of a server once instead of twice for every
// request. A derivation costs more than all that sealing and opening do otherwise.
type sharedKeys struct {
	private [32]byte

	mu   sync.RWMutex
	kept map[string]*sharedKey
}

func newSharedKeys(seed messages.Secret) (*sharedKeys, error) {
	if seed.IsZero() {
		return nil, messages.Malformed.Because("the sealing key of the AUTH account is missing")
	}
	kind, raw, err := nkeys.DecodeSeed([]byte(seed.Reveal()))
	if err != nil || kind != nkeys.PrefixByteCurve || len(raw) != 32 {
		return nil, messages.Malformed.Because("the sealing key of the AUTH account is not a curve key's seed")
	}
	return &sharedKeys{private: [32]byte(raw), kept: make(map[string]*sharedKey)}, nil
}

// of finds or derives the shared key for a public one, and says whether it was
// kept. A derived one is not kept yet: anybody may name a key.
func (k *sharedKeys) of(public string) (key *sharedKey, kept bool, err error) {
	k.mu.RLock()
	key, kept = k.kept[public]
	k.mu.RUnlock()
	if kept {
		return key, true, nil
	}
	raw, err := nkeys.Decode(nkeys.PrefixByteCurve, []byte(public))
	if err != nil || len(raw) != 32 {
		return nil, false, messages.RequestUnsealed.Because("%s does not name a sealing key", SealHeader)
	}
	key = new(sharedKey)
	box.Precompute((*[32]byte)(key), (*[32]byte)(raw), &k.private)
	return key, false, nil
}

// keep makes a key ready for the next request of its server.
func (k *sharedKeys) keep(public string, key *sharedKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.kept[public]; !known && len(k.kept) >= maxSharedKeys {
		for other := range k.kept {
			delete(k.kept, other)
			break
		}
	}
	k.kept[public] = key
}

// seal closes a message so that only the server of this key can open it.
func (key *sharedKey) seal(message []byte) []byte {
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // cannot fail: without randomness the process ends
	sealed := make([]byte, sealPrefix, sealPrefix+secretbox.Overhead+len(message))
	copy(sealed, sealVersion)
	copy(sealed[len(sealVersion):], nonce[:])
	return secretbox.Seal(sealed, message, &nonce, (*[32]byte)(key))
}
