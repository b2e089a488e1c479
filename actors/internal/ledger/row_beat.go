package ledger

import (
	"time"

	"github.com/cotal-ai/authplane/messages"
)

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
