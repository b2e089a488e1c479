package ledger

import (
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// rosterFields is the wire form of `roster`. W is drawn anew for each write.
type rosterFields struct {
	V       int      `json:"v"`
	Servers []string `json:"servers"`
	W       string   `json:"w"`
}

// EncodeRoster writes the names of the servers ever seen, sorted, each once.
func EncodeRoster(servers []string, witness string) ([]byte, error) {
	f := rosterFields{V: rowVersion, Servers: listed(servers), W: witness}
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
	case slices.ContainsFunc(f.Servers, func(s string) bool { return !isServer(s) }):
		return "names no server"
	case names.CheckUID(f.W) != nil:
		return "names no witness"
	}
	return ""
}

// isServer reports whether s can be the name of a server, or of a stream.
func isServer(s string) bool { return s != "" && isText(s) }
