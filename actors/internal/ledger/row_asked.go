package ledger

import (
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Asking is what one process asks to be retired and has not seen begun.
type Asking struct {
	Instance string
	// UIDs are sorted, each once.
	UIDs []string
}

// askedFields is the wire form of `asked.<instance>`. The instance stands in the
// row too, so that it rebuilds its key; W is drawn anew for each write.
type askedFields struct {
	V        int      `json:"v"`
	Instance string   `json:"instance"`
	UIDs     []string `json:"uids"`
	W        string   `json:"w"`
}

// EncodeAsked writes what a process asks for. It refuses what DecodeAsked would
// not take, and with messages.Busy what is more than a row may hold.
func EncodeAsked(a Asking, witness string) ([]byte, error) {
	f := askedFields{V: rowVersion, Instance: a.Instance, UIDs: listed(a.UIDs), W: witness}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("asked by %s: %s", a.Instance, why)
	}
	value, err := encode(f)
	if err == nil && len(value) > maxRow {
		return nil, messages.Busy.Because("%d retirements wait for the plane", len(a.UIDs)-1)
	}
	return value, err
}

// DecodeAsked reads what a process asks for, or says messages.RowCorrupt.
func DecodeAsked(row Row) (Asking, error) {
	var f askedFields
	if err := decode(row, &f); err != nil {
		return Asking{}, err
	}
	if why := f.fault(); why != "" {
		return Asking{}, corrupt(row.Key, why)
	}
	if AskedKey(f.Instance) != row.Key {
		return Asking{}, corrupt(row.Key, "names another key")
	}
	return Asking{Instance: f.Instance, UIDs: f.UIDs}, nil
}

func (f askedFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.Instance):
		return "names no instance"
	case f.UIDs == nil || !isSet(f.UIDs):
		return "the list is not sorted, or names one twice"
	case slices.ContainsFunc(f.UIDs, func(uid string) bool { return names.CheckUID(uid) != nil }):
		return "names no incarnation"
	case names.CheckUID(f.W) != nil:
		return "names no witness"
	}
	return ""
}
