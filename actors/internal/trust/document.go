package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// document is chain.json: everything public about a chain. The public keys are
// not repeated in it, they stand in the JWTs.
type document struct {
	V         int                `json:"v"`
	Space     string             `json:"space"`
	InstallID string             `json:"install_id"`
	Created   time.Time          `json:"created"`
	Operator  string             `json:"operator"`
	Accounts  map[Account]string `json:"accounts"`
	// Callouts are the public keys of the callout users, in the order of their files.
	Callouts []string `json:"callouts"`
	Presence string   `json:"presence"`
	// OwnerSecretHash is the hex SHA-256 of the owner secret, 32 random bytes: with
	// another one every owner would have another name, and nothing else would tell.
	OwnerSecretHash string `json:"owner_secret_sha256"`
}

// hashOf is how the document names the owner secret.
func hashOf(secret messages.Secret) string {
	sum := sha256.Sum256([]byte(secret.Reveal()))
	return hex.EncodeToString(sum[:])
}

const documentVersion = 1

// parseDocument reads chain.json strictly: unknown fields and trailing bytes are
// refused, and so is any other version.
func parseDocument(data []byte) (document, error) {
	var d document
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return document{}, errors.New("it is not a chain's document, or was cut short")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return document{}, errors.New("something stands behind the document")
	}
	if d.V != documentVersion {
		return document{}, errors.New("it is of another version")
	}
	return d, nil
}

func (d document) encode() ([]byte, error) {
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}
