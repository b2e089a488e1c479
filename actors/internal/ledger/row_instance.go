package ledger

import (
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Asked is what one process asks to be retired and has not seen begun.
type Asked struct {
	Instance string
	// UIDs are sorted, each once.
	UIDs []string
}

// askedFields is the wire form of `asked.<instance>`. The instance stands in the
// row too, so that it rebuilds its key.
type askedFields struct {
	V        int      `json:"v"`
	Instance string   `json:"instance"`
	UIDs     []string `json:"uids"`
}

// EncodeAsked writes what a process asks for. It refuses what DecodeAsked would
// not take.
func EncodeAsked(a Asked) ([]byte, error) {
	f := askedFields{V: rowVersion, Instance: a.Instance, UIDs: listed(a.UIDs)}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("asked by %s: %s", a.Instance, why)
	}
	return encode(f)
}

// DecodeAsked reads what a process asks for, or says messages.RowCorrupt.
func DecodeAsked(row Row) (Asked, error) {
	var f askedFields
	if err := decode(row, &f); err != nil {
		return Asked{}, err
	}
	if why := f.fault(); why != "" {
		return Asked{}, corrupt(row.Key, why)
	}
	if AskedKey(f.Instance) != row.Key {
		return Asked{}, corrupt(row.Key, "names another key")
	}
	return Asked{Instance: f.Instance, UIDs: f.UIDs}, nil
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
	}
	return ""
}

// Beat is the proof that a connection reached a quorum.
type Beat struct {
	Instance string
	// Count grows with each beat of one process.
	Count uint64
	// At is the writer's clock; nobody decides by it.
	At time.Time
}

// beatFields is the wire form of `beat.<instance>`.
type beatFields struct {
	V        int    `json:"v"`
	Instance string `json:"instance"`
	N        uint64 `json:"n"`
	At       int64  `json:"at"` // ms since 1970
}

// EncodeBeat writes a beat. It refuses one that DecodeBeat would not take.
func EncodeBeat(b Beat) ([]byte, error) {
	f := beatFields{V: rowVersion, Instance: b.Instance, N: b.Count, At: millis(b.At)}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("beat of %s: %s", b.Instance, why)
	}
	return encode(f)
}

// DecodeBeat reads a beat, or says messages.RowCorrupt.
func DecodeBeat(row Row) (Beat, error) {
	var f beatFields
	if err := decode(row, &f); err != nil {
		return Beat{}, err
	}
	if why := f.fault(); why != "" {
		return Beat{}, corrupt(row.Key, why)
	}
	if BeatKey(f.Instance) != row.Key {
		return Beat{}, corrupt(row.Key, "names another key")
	}
	return Beat{Instance: f.Instance, Count: f.N, At: instant(f.At)}, nil
}

func (f beatFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.Instance):
		return "names no instance"
	case !isCount(f.N), !isInstant(f.At):
		return "a number is out of range"
	}
	return ""
}

// rosterFields is the wire form of `roster`.
type rosterFields struct {
	V       int      `json:"v"`
	Servers []string `json:"servers"`
}

// EncodeRoster writes the names of the servers ever seen, sorted, each once.
func EncodeRoster(servers []string) ([]byte, error) {
	f := rosterFields{V: rowVersion, Servers: listed(servers)}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("roster: %s", why)
	}
	return encode(f)
}

// DecodeRoster reads the names of the servers ever seen, or says messages.RowCorrupt.
func DecodeRoster(row Row) ([]string, error) {
	var f rosterFields
	if err := decode(row, &f); err != nil {
		return nil, err
	}
	if why := f.fault(); why != "" {
		return nil, corrupt(row.Key, why)
	}
	if row.Key != RosterKey {
		return nil, corrupt(row.Key, "names another key")
	}
	return f.Servers, nil
}

func (f rosterFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case f.Servers == nil || !isSet(f.Servers):
		return "the list is not sorted, or names one twice"
	case slices.ContainsFunc(f.Servers, func(s string) bool { return s == "" || !isText(s) }):
		return "names no server"
	}
	return ""
}

// isSet reports whether list is strictly ascending.
func isSet(list []string) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1] >= list[i] {
			return false
		}
	}
	return true
}
