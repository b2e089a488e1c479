package trust

import (
	"fmt"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/messages"
)

// Key is a key pair: its public half, and the seed that only the signer reveals.
type Key struct {
	Public string
	Seed   messages.Secret
}

// Material is everything the daemon holds of a trust chain: signing keys, never
// an operator's or an account's identity. It is immutable once loaded and safe
// for concurrent use.
type Material struct {
	Space string
	// InstallID names the installation; it stands in the authority stream's metadata.
	InstallID string
	// Created is when the chain was made, in whole seconds.
	Created time.Time

	// Accounts holds the public identity of each account.
	Accounts map[Account]string
	// Signing holds the signing keys of AUTH, DATA, CTRL and SVC. SYS has none here.
	Signing map[Account]Key
	// Observer and Evictor are the scoped signing keys of SYS; zero without a way into it.
	Observer, Evictor Key
	// Callouts are the users of AUTH that answer connects, at least one; several
	// connections may share one. Presence says that this process lives.
	Callouts []Key
	Presence Key
	// XKey opens connect requests and seals their answers.
	XKey Key
	// Keyring is the JSON document of the bearer signing keys, as the identity
	// room reads it.
	Keyring messages.Secret
	// OwnerSecret derives owners, as the identity room reads it.
	OwnerSecret messages.Secret

	signers map[string]*signer
}

// Format says whose material it is and no more, whatever the verb is: package fmt
// looks past the redaction of what it finds behind unexported fields.
func (m Material) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "key material of space %s", m.Space)
}

// Account returns the public identity of an account, empty for an unknown one.
func (m *Material) Account(a Account) string { return m.Accounts[a] }

// Signer returns the key pair of one of the material's keys, kept ready so that a
// signature costs no derivation. Nil for a key that is not the material's. Wipe
// and the encryption methods do nothing on it.
func (m *Material) Signer(public string) nkeys.KeyPair {
	if s, ok := m.signers[public]; ok {
		return s
	}
	return nil
}
