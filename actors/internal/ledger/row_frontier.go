package ledger

import (
	"maps"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// isFrontier reports whether every stream has a name and a sequence.
func isFrontier(streams map[string]uint64) bool {
	for name, last := range streams {
		if !isServer(name) || last > largestNumber {
			return false
		}
	}
	return true
}

// Frontier is how far the streams were when an incarnation ended.
type Frontier struct {
	UID string
	// Operation is the retirement that ended it.
	Operation string
	// Streams are the last sequences of the streams that were named.
	Streams map[string]uint64
}

// frontierFields is the wire form of `frontier.<uid>`, which is written once.
type frontierFields struct {
	V       int               `json:"v"`
	UID     string            `json:"uid"`
	OpID    string            `json:"opId"`
	Streams map[string]uint64 `json:"streams"`
}

// EncodeFrontier writes a frontier. It refuses one that DecodeFrontier would not take.
func EncodeFrontier(r Frontier) ([]byte, error) {
	f := frontierFields{V: rowVersion, UID: r.UID, OpID: r.Operation, Streams: maps.Clone(r.Streams)}
	if f.Streams == nil {
		f.Streams = map[string]uint64{}
	}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("frontier of %s: %s", r.UID, why)
	}
	return encode(f)
}

// DecodeFrontier reads a frontier, or says messages.RowCorrupt.
func DecodeFrontier(row Row) (Frontier, error) {
	var f frontierFields
	if err := decode(row, &f); err != nil {
		return Frontier{}, err
	}
	if why := f.fault(); why != "" {
		return Frontier{}, corrupt(row.Key, why)
	}
	if FrontierKey(f.UID) != row.Key {
		return Frontier{}, corrupt(row.Key, "names another key")
	}
	return Frontier{UID: f.UID, Operation: f.OpID, Streams: f.Streams}, nil
}

func (f frontierFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case names.CheckUID(f.UID) != nil:
		return "names no incarnation"
	case names.CheckUID(f.OpID) != nil:
		return "names no operation"
	case f.Streams == nil || !isFrontier(f.Streams):
		return "a frontier is none"
	}
	return ""
}
