package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	documentVersion = 1
	// maxDocument and maxKeys bound what is read; rotation keeps far below them.
	maxDocument = 64 << 10
	maxKeys     = 16
)

// document is the stored form of a keyring. Times are Unix seconds, 0 for never.
type document struct {
	V     int64         `json:"v"`
	Space string        `json:"space"`
	Keys  []documentKey `json:"keys"`
}

type documentKey struct {
	KID          string   `json:"kid"`
	State        KeyState `json:"state"`
	PublishedAt  int64    `json:"publishedAt"`
	ActivatedAt  int64    `json:"activatedAt"`
	SupersededAt int64    `json:"supersededAt"`
	RetiredAt    int64    `json:"retiredAt"`
	X            string   `json:"x"`
	// D is the private half, empty once the key is retired.
	D string `json:"d"`
}

// OpenKeyring reads the stored document of a space. It recomputes every key's
// name and never makes or mends a key: a document of another space is
// KeyringForeign, one that is torn, altered or makes no sense is KeyringDamaged.
func OpenKeyring(space string, stored messages.Secret) (*Keyring, error) {
	if err := names.CheckSpace(space); err != nil {
		return nil, err
	}
	doc, err := readDocument([]byte(stored.Reveal()))
	if err != nil {
		return nil, messages.KeyringDamaged.From(err)
	}
	if doc.Space != space {
		return nil, messages.KeyringForeign.Because("they belong to %.40q", doc.Space)
	}
	keys := make([]signingKey, len(doc.Keys))
	for i, stored := range doc.Keys {
		if keys[i], err = openKey(stored); err != nil {
			return nil, messages.KeyringDamaged.From(fmt.Errorf("key %d: %w", i+1, err))
		}
	}
	if err := checkKeys(keys); err != nil {
		return nil, messages.KeyringDamaged.From(err)
	}
	return newKeyring(space, keys), nil
}

func encodeKeyring(space string, keys []signingKey) (messages.Secret, error) {
	if err := names.CheckSpace(space); err != nil {
		return messages.Secret{}, err
	}
	if err := checkKeys(keys); err != nil {
		return messages.Secret{}, messages.KeyringDamaged.From(err)
	}
	doc := document{V: documentVersion, Space: space, Keys: make([]documentKey, len(keys))}
	for i, key := range keys {
		doc.Keys[i] = storeKey(key)
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return messages.Secret{}, err
	}
	return messages.NewSecret(string(text) + "\n"), nil
}

// checkKeys refuses keys that no sequence of rotations leads to.
func checkKeys(keys []signingKey) error {
	seen, count := map[string]bool{}, map[KeyState]int{}
	for _, key := range keys {
		if seen[key.KID] {
			return errors.New("a key is listed twice")
		}
		seen[key.KID] = true
		count[key.State]++
		if err := checkTimes(key.KeyInfo); err != nil {
			return err
		}
	}
	switch {
	case len(keys) > maxKeys:
		return fmt.Errorf("more than %d keys", maxKeys)
	case count[KeyActive] != 1:
		return fmt.Errorf("%d active keys, not one", count[KeyActive])
	case count[KeyPublished] > 1:
		return errors.New("two keys wait to become active")
	}
	return nil
}

// checkTimes refuses a key with a time for a state it has not reached, or without
// one for a state it has. Times may stand still or go back: clocks do.
func checkTimes(key KeyInfo) error {
	reached := 0
	switch key.State {
	case KeyPublished:
		reached = 1
	case KeyActive:
		reached = 2
	case KeySuperseded:
		reached = 3
	case KeyRetired:
		reached = 4
	default:
		return errors.New("a key is in no known state")
	}
	for i, at := range []time.Time{key.Published, key.Activated, key.Superseded, key.Retired} {
		if at.IsZero() == (i < reached) {
			return fmt.Errorf("the times of a key do not fit its state %s", key.State)
		}
	}
	return nil
}

func storeKey(key signingKey) documentKey {
	stored := documentKey{KID: key.KID, State: key.State, X: base64.RawURLEncoding.EncodeToString(key.public),
		PublishedAt: storeTime(key.Published), ActivatedAt: storeTime(key.Activated),
		SupersededAt: storeTime(key.Superseded), RetiredAt: storeTime(key.Retired)}
	if key.private != nil {
		stored.D = base64.RawURLEncoding.EncodeToString(key.private.Seed())
	}
	return stored
}

func openKey(stored documentKey) (signingKey, error) {
	public, err := base64.RawURLEncoding.Strict().DecodeString(stored.X)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return signingKey{}, errors.New("x is not an Ed25519 key")
	}
	if thumbprint(public) != stored.KID {
		return signingKey{}, errors.New("kid is not the thumbprint of the key")
	}
	key := signingKey{public: public, KeyInfo: KeyInfo{KID: stored.KID, State: stored.State,
		Published: openTime(stored.PublishedAt), Activated: openTime(stored.ActivatedAt),
		Superseded: openTime(stored.SupersededAt), Retired: openTime(stored.RetiredAt)}}
	if stored.State == KeyRetired && stored.D == "" {
		return key, nil
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(stored.D)
	if err != nil || len(seed) != ed25519.SeedSize || stored.State == KeyRetired {
		return signingKey{}, errors.New("d does not fit the key")
	}
	key.private = ed25519.NewKeyFromSeed(seed)
	if !key.public.Equal(key.private.Public()) {
		return signingKey{}, errors.New("d is not the private half of x")
	}
	return key, nil
}

func storeTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func openTime(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func readDocument(data []byte) (document, error) {
	var doc document
	if len(data) > maxDocument {
		return doc, errors.New("it is too large")
	}
	err := readObject(data, func(name string, value json.RawMessage) error {
		switch name {
		case "v":
			return readInteger(value, &doc.V)
		case "space":
			return readString(value, &doc.Space)
		case "keys":
			return readDocumentKeys(value, &doc.Keys)
		}
		return errUnknownField
	}, "v", "space", "keys")
	if err == nil && doc.V != documentVersion {
		err = fmt.Errorf("version %d is not known", doc.V)
	}
	return doc, err
}

func readDocumentKeys(value json.RawMessage, into *[]documentKey) error {
	return walkList(value, maxKeys, func(entry json.RawMessage) error {
		key, err := readDocumentKey(entry)
		*into = append(*into, key)
		return err
	})
}

func readDocumentKey(entry json.RawMessage) (documentKey, error) {
	var key documentKey
	err := walkObject(entry, func(name string, value json.RawMessage) error {
		switch name {
		case "kid":
			return readString(value, &key.KID)
		case "state":
			return readString(value, (*string)(&key.State))
		case "publishedAt":
			return readInteger(value, &key.PublishedAt)
		case "activatedAt":
			return readInteger(value, &key.ActivatedAt)
		case "supersededAt":
			return readInteger(value, &key.SupersededAt)
		case "retiredAt":
			return readInteger(value, &key.RetiredAt)
		case "x":
			return readString(value, &key.X)
		case "d":
			return readString(value, &key.D)
		}
		return errUnknownField
	}, "kid", "state", "publishedAt", "activatedAt", "supersededAt", "retiredAt", "x", "d")
	return key, err
}
