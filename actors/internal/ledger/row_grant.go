package ledger

import (
	"encoding/hex"
	"unicode"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// maxText is the longest label, writer's name or role, in bytes.
	maxText = 256
	// maxRow is the largest row, in bytes: well below what a server takes as one message.
	maxRow = 256 << 10

	hashBytes = 32 // SHA-256
)

// grantFields is the wire form of `grant.<owner>.<actor>`.
type grantFields struct {
	V         int      `json:"v"`
	Owner     string   `json:"owner"`
	Actor     string   `json:"actor"`
	Kind      string   `json:"kind"`
	UID       string   `json:"uid"`
	Revision  uint64   `json:"revision"`
	Scope     []string `json:"scope"`
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	Serve     bool     `json:"serve"`
	Role      string   `json:"role,omitempty"`
	Parent    string   `json:"parent,omitempty"`
	Label     string   `json:"label,omitempty"`
	TokenHash string   `json:"tokenHash,omitempty"`
	State     string   `json:"state"`
	By        string   `json:"by"`
	At        int64    `json:"at"` // ms since 1970
	// W is drawn anew by each edit, so that no two writes of a grant are the same
	// bytes: a writer whose answer was lost knows his own from another's.
	W string `json:"w"`
}

// EncodeGrant writes a grant with the witness of this write. It refuses one that
// DecodeGrant would not take.
func EncodeGrant(g messages.Grant, witness string) ([]byte, error) {
	f := grantFields{V: rowVersion, Owner: g.Principal.Owner, Actor: g.Principal.Actor, Kind: string(g.Kind),
		UID: g.UID, Revision: g.Revision, Scope: listed(g.Scope), Publish: listed(g.Publish),
		Subscribe: listed(g.Subscribe), Serve: g.Serve, Role: g.Role, Parent: g.Parent.String(), Label: g.Label,
		TokenHash: g.TokenHash, State: string(g.State), By: g.By, At: millis(g.At), W: witness}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("grant of %s: %s", g.Principal, why)
	}
	value, err := encode(f)
	if err == nil && len(value) > maxRow {
		return nil, messages.Malformed.Because("a grant is at most %d bytes", maxRow)
	}
	return value, err
}

// DecodeGrant reads a grant, or says messages.RowCorrupt.
func DecodeGrant(row Row) (messages.Grant, error) {
	var f grantFields
	if err := decode(row, &f); err != nil {
		return messages.Grant{}, err
	}
	if why := f.fault(); why != "" {
		return messages.Grant{}, corrupt(row.Key, why)
	}
	g := messages.Grant{Principal: messages.Principal{Owner: f.Owner, Actor: f.Actor}, Kind: messages.GrantKind(f.Kind),
		UID: f.UID, Revision: f.Revision,
		Allowance: messages.Allowance{Scope: f.Scope, Publish: f.Publish, Subscribe: f.Subscribe, Serve: f.Serve, Role: f.Role},
		Label:     f.Label, TokenHash: f.TokenHash, State: messages.GrantState(f.State), By: f.By, At: instant(f.At)}
	if f.Parent != "" {
		g.Parent, _ = names.ParsePrincipal(f.Parent) // fault has checked it
	}
	if GrantKey(g.Principal) != row.Key {
		return messages.Grant{}, corrupt(row.Key, "names another key")
	}
	return g, nil
}

// fault says which rule the fields break; empty is none. Whether the patterns are
// good ones is for whoever grants; the ledger keeps what it was given.
func (f grantFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case names.CheckPrincipal(messages.Principal{Owner: f.Owner, Actor: f.Actor}) != nil:
		return "names no principal"
	case names.CheckUID(f.UID) != nil, names.CheckUID(f.W) != nil:
		return "names no incarnation or witness"
	case !isCount(f.Revision), !isInstant(f.At):
		return "a number is out of range"
	case f.Scope == nil, f.Publish == nil, f.Subscribe == nil:
		return "a list is missing"
	case f.Parent != "" && !isPrincipal(f.Parent):
		return "the parent is no principal"
	case !isText(f.Role), !isText(f.Label), !isText(f.By), f.By == "":
		return "a text is missing or too long"
	case f.State != string(messages.GrantLive) && f.State != string(messages.GrantRevoked):
		return "unknown state"
	}
	return f.kindFault()
}

// kindFault checks that exactly the machines have a secret.
func (f grantFields) kindFault() string {
	switch messages.GrantKind(f.Kind) {
	case messages.Interactive:
		if f.TokenHash != "" {
			return "a person's grant holds a secret"
		}
	case messages.Managed:
		if !isHash(f.TokenHash) {
			return "a machine's grant holds no secret"
		}
	default:
		return "unknown kind"
	}
	return ""
}

// listed is list, never nil: on the wire an empty list is `[]`.
func listed(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func isPrincipal(dotted string) bool {
	_, err := names.ParsePrincipal(dotted)
	return err == nil
}

// isHash reports whether s is the lower-case hex of a SHA-256.
func isHash(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == hashBytes && hex.EncodeToString(raw) == s
}

// isText reports whether s is short and holds printable characters only.
func isText(s string) bool {
	if len(s) > maxText || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
