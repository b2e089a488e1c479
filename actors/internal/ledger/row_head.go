package ledger

import (
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Kinds of operation that may hold a gate.
const (
	KindTakeover   = "takeover"
	KindRetirement = "retirement"
)

// headFields is the wire form of `head.<owner>.<actor>`.
type headFields struct {
	V          int             `json:"v"`
	Owner      string          `json:"owner"`
	Actor      string          `json:"actor"`
	UID        string          `json:"uid"`
	Epoch      uint64          `json:"epoch"`
	State      string          `json:"state"`
	Generation uint64          `json:"generation"`
	Op         *operationField `json:"op,omitempty"`
	Root       *rootField      `json:"root,omitempty"`
}

type operationField struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

type rootField struct {
	ID  string `json:"id"`
	Exp int64  `json:"exp"` // ms since 1970
}

// EncodeHead writes a head. It refuses one that DecodeHead would not take.
func EncodeHead(h messages.Head) ([]byte, error) {
	f := headFields{V: rowVersion, Owner: h.Principal.Owner, Actor: h.Principal.Actor, UID: h.UID,
		Epoch: h.Epoch, State: string(h.State), Generation: h.Generation}
	if h.Operation != (messages.OperationRef{}) {
		f.Op = &operationField{ID: h.Operation.ID, Kind: h.Operation.Kind}
	}
	if h.Root != (messages.Root{}) {
		f.Root = &rootField{ID: h.Root.ID, Exp: millis(h.Root.Expires)}
	}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("head of %s: %s", h.Principal, why)
	}
	return encode(f)
}

// DecodeHead reads a head, or says messages.RowCorrupt.
func DecodeHead(row Row) (messages.Head, error) {
	var f headFields
	if err := decode(row, &f); err != nil {
		return messages.Head{}, err
	}
	h := messages.Head{Principal: messages.Principal{Owner: f.Owner, Actor: f.Actor}, UID: f.UID,
		Epoch: f.Epoch, State: messages.HeadState(f.State), Generation: f.Generation}
	if why := f.fault(); why != "" {
		return messages.Head{}, corrupt(row.Key, why)
	}
	if HeadKey(h.Principal) != row.Key {
		return messages.Head{}, corrupt(row.Key, "names another key")
	}
	if f.Op != nil {
		h.Operation = messages.OperationRef{ID: f.Op.ID, Kind: f.Op.Kind}
	}
	if f.Root != nil {
		h.Root = messages.Root{ID: f.Root.ID, Expires: instant(f.Root.Exp)}
	}
	return h, nil
}

// fault says which rule the fields break; empty is none.
func (f headFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case names.CheckPrincipal(messages.Principal{Owner: f.Owner, Actor: f.Actor}) != nil:
		return "names no principal"
	case names.CheckUID(f.UID) != nil:
		return "names no incarnation"
	case !isCount(f.Epoch), !isCount(f.Generation):
		return "a counter is out of range"
	case f.Root != nil && (names.CheckUID(f.Root.ID) != nil || !isInstant(f.Root.Exp)):
		return "the root is no credential"
	}
	return f.stateFault()
}

// stateFault checks that exactly the gates an operation holds name it.
func (f headFields) stateFault() string {
	kind := ""
	switch messages.HeadState(f.State) {
	case messages.HeadActive, messages.HeadRetired:
	case messages.HeadFrozen:
		kind = KindTakeover
	case messages.HeadRetiring:
		kind = KindRetirement
	default:
		return "unknown state"
	}
	if (f.Op != nil) != (kind != "") {
		return "the state and the operation do not agree"
	}
	if f.Op != nil && (f.Op.Kind != kind || names.CheckUID(f.Op.ID) != nil) {
		return "the operation cannot hold this gate"
	}
	return ""
}
