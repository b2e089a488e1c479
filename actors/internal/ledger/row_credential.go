package ledger

import (
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// CredentialState says whether a credential may still be used.
type CredentialState string

const (
	// CredentialActive may be used until it expires.
	CredentialActive CredentialState = "active"
	// CredentialRevoked may never be used again.
	CredentialRevoked CredentialState = "revoked"
)

// Credential is a descendant of an incarnation's root.
type Credential struct {
	ID string
	// Holder is whose connections the credential stands for.
	Holder messages.Principal
	UID    string
	// Endpoint is set for the credentials of a service instance.
	Endpoint string
	// Chain names what it was derived from, nearest last; it is never empty.
	Chain   []string
	State   CredentialState
	Expires time.Time
}

// credentialFields is the wire form of `cred.<uid>.<credId>`.
type credentialFields struct {
	V        int      `json:"v"`
	CredID   string   `json:"credId"`
	Holder   string   `json:"holder"`
	UID      string   `json:"uid"`
	Endpoint string   `json:"endpoint,omitempty"`
	Chain    []string `json:"chain"`
	State    string   `json:"state"`
	Exp      int64    `json:"exp"` // ms since 1970
}

// EncodeCredential writes a credential. It refuses one that DecodeCredential would
// not take.
func EncodeCredential(c Credential) ([]byte, error) {
	f := credentialFields{V: rowVersion, CredID: c.ID, Holder: c.Holder.String(), UID: c.UID, Endpoint: c.Endpoint,
		Chain: listed(c.Chain), State: string(c.State), Exp: millis(c.Expires)}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("credential of %s: %s", c.Holder, why)
	}
	return encode(f)
}

// DecodeCredential reads a credential, or says messages.RowCorrupt.
func DecodeCredential(row Row) (Credential, error) {
	var f credentialFields
	if err := decode(row, &f); err != nil {
		return Credential{}, err
	}
	if why := f.fault(); why != "" {
		return Credential{}, corrupt(row.Key, why)
	}
	if CredentialKey(f.UID, f.CredID) != row.Key {
		return Credential{}, corrupt(row.Key, "names another key")
	}
	holder, _ := names.ParsePrincipal(f.Holder) // fault has checked it
	return Credential{ID: f.CredID, Holder: holder, UID: f.UID, Endpoint: f.Endpoint, Chain: f.Chain,
		State: CredentialState(f.State), Expires: instant(f.Exp)}, nil
}

func (f credentialFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.CredID):
		return "names no credential"
	case names.CheckUID(f.UID) != nil:
		return "names no incarnation"
	case !isPrincipal(f.Holder):
		return "the holder is no principal"
	case f.Endpoint != "" && !isToken(f.Endpoint):
		return "the endpoint is no token"
	case len(f.Chain) == 0 || !isChain(f.Chain):
		return "the chain is no lineage"
	case f.State != string(CredentialActive) && f.State != string(CredentialRevoked):
		return "unknown state"
	case !isInstant(f.Exp):
		return "a number is out of range"
	}
	return ""
}

// isToken reports whether s is one token of a key: [A-Za-z0-9_-]{1,256}.
func isToken(s string) bool {
	if s == "" || len(s) > maxText {
		return false
	}
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// isChain reports whether every member is tokens joined by dots.
func isChain(chain []string) bool {
	for _, member := range chain {
		for token := range strings.SplitSeq(member, ".") {
			if !isToken(token) {
				return false
			}
		}
	}
	return true
}
