package ledger

import (
	"strings"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Handle names something signed from which credentials may be derived.
type Handle struct {
	// Issuer names the key that signed it.
	Issuer string
	// ID names it among those of that key.
	ID string
}

// Members of a credential's chain.
const (
	// chainRoot says that it was derived from the root of its incarnation.
	chainRoot = "root"
	// A handle is `handle.<issuer>.<id>`, a session `session.<id>`.
	chainHandle  = "handle"
	chainSession = "session"
)

// String is the handle as a member of a chain.
func (h Handle) String() string { return chainHandle + "." + h.Issuer + "." + h.ID }

func (h Handle) isWhole() bool { return isToken(h.Issuer) && isToken(h.ID) }

// HandlesOf lists the handles in a credential's chain.
func HandlesOf(chain []string) []Handle {
	var handles []Handle
	for _, member := range chain {
		if tokens := strings.Split(member, "."); len(tokens) == 3 && tokens[0] == chainHandle {
			handles = append(handles, Handle{Issuer: tokens[1], ID: tokens[2]})
		}
	}
	return handles
}

// SessionsOf lists the ids of the sessions in a credential's chain.
func SessionsOf(chain []string) []string {
	var sessions []string
	for _, member := range chain {
		if id, is := strings.CutPrefix(member, chainSession+"."); is && isToken(id) {
			sessions = append(sessions, id)
		}
	}
	return sessions
}

// Lineage says that a credential was derived from a handle. It carries no authority.
type Lineage struct {
	Handle       Handle
	UID          string
	CredentialID string
}

// lineageFields is the wire form of `bysrc.<kid>.<handle>.<uid>.<credId>`.
type lineageFields struct {
	V      int    `json:"v"`
	KID    string `json:"kid"`
	Handle string `json:"handle"`
	UID    string `json:"uid"`
	CredID string `json:"credId"`
}

// EncodeLineage writes a lineage. It refuses one that DecodeLineage would not take.
func EncodeLineage(l Lineage) ([]byte, error) {
	f := lineageFields{V: rowVersion, KID: l.Handle.Issuer, Handle: l.Handle.ID, UID: l.UID, CredID: l.CredentialID}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("lineage of %s: %s", l.Handle, why)
	}
	return encode(f)
}

// DecodeLineage reads a lineage, or says messages.RowCorrupt.
func DecodeLineage(row Row) (Lineage, error) {
	var f lineageFields
	if err := decode(row, &f); err != nil {
		return Lineage{}, err
	}
	if why := f.fault(); why != "" {
		return Lineage{}, corrupt(row.Key, why)
	}
	l := Lineage{Handle: Handle{Issuer: f.KID, ID: f.Handle}, UID: f.UID, CredentialID: f.CredID}
	if LineageKey(l.Handle, l.UID, l.CredentialID) != row.Key {
		return Lineage{}, corrupt(row.Key, "names another key")
	}
	return l, nil
}

func (f lineageFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.KID), !isToken(f.Handle):
		return "names no handle"
	case names.CheckUID(f.UID) != nil:
		return "names no incarnation"
	case !isToken(f.CredID):
		return "names no credential"
	}
	return ""
}

// SourceState says whether anything may be derived from a handle.
type SourceState string

const (
	// SourceOpen lets credentials be derived.
	SourceOpen SourceState = "open"
	// SourceFrozen is a handle that was revoked; it is never opened again.
	SourceFrozen SourceState = "frozen"
)

// SourceGate is the gate of a signed handle.
type SourceGate struct {
	Handle Handle
	State  SourceState
}

// sourceFields is the wire form of `srcgate.<kid>.<handle>`.
type sourceFields struct {
	V      int    `json:"v"`
	KID    string `json:"kid"`
	Handle string `json:"handle"`
	State  string `json:"state"`
}

// EncodeSource writes the gate of a handle. It refuses one that DecodeSource would
// not take.
func EncodeSource(g SourceGate) ([]byte, error) {
	f := sourceFields{V: rowVersion, KID: g.Handle.Issuer, Handle: g.Handle.ID, State: string(g.State)}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("gate of %s: %s", g.Handle, why)
	}
	return encode(f)
}

// DecodeSource reads the gate of a handle, or says messages.RowCorrupt.
func DecodeSource(row Row) (SourceGate, error) {
	var f sourceFields
	if err := decode(row, &f); err != nil {
		return SourceGate{}, err
	}
	if why := f.fault(); why != "" {
		return SourceGate{}, corrupt(row.Key, why)
	}
	g := SourceGate{Handle: Handle{Issuer: f.KID, ID: f.Handle}, State: SourceState(f.State)}
	if SourceKey(g.Handle) != row.Key {
		return SourceGate{}, corrupt(row.Key, "names another key")
	}
	return g, nil
}

func (f sourceFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.KID), !isToken(f.Handle):
		return "names no handle"
	case f.State != string(SourceOpen) && f.State != string(SourceFrozen):
		return "unknown state"
	}
	return ""
}
