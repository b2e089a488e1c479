package ledger

import (
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// owedFields is the wire form of `owed`. W is drawn anew for each write, so that a
// batch whose answer was lost can be told from any other.
type owedFields struct {
	V   int      `json:"v"`
	Ops []string `json:"ops"`
	W   string   `json:"w"`
}

// EncodeOwed writes what is owed. It refuses what DecodeOwed would not take.
func EncodeOwed(o messages.Owed, witness string) ([]byte, error) {
	f := owedFields{V: rowVersion, Ops: listed(o.Ops), W: witness}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("owed: %s", why)
	}
	return encode(f)
}

// DecodeOwed reads what is owed, or says messages.RowCorrupt.
func DecodeOwed(row Row) (messages.Owed, error) {
	var f owedFields
	if err := decode(row, &f); err != nil {
		return messages.Owed{}, err
	}
	if why := f.fault(); why != "" {
		return messages.Owed{}, corrupt(row.Key, why)
	}
	if row.Key != OwedKey {
		return messages.Owed{}, corrupt(row.Key, "names another key")
	}
	return messages.Owed{Ops: f.Ops}, nil
}

func (f owedFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case f.Ops == nil || !isSet(f.Ops):
		return "the list is not sorted, or names one twice"
	case slices.ContainsFunc(f.Ops, func(op string) bool { return names.CheckUID(op) != nil }):
		return "names no operation"
	case names.CheckUID(f.W) != nil:
		return "names no witness"
	}
	return ""
}
