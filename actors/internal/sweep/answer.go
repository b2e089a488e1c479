package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nkeys"
)

// sender is who a server says it is, in every answer.
type sender struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
}

// refusal is how a server says that it cannot answer.
type refusal struct {
	Code        int    `json:"code"`
	Description string `json:"description"`
}

func (r *refusal) String() string { return fmt.Sprintf("%s (%d)", r.Description, r.Code) }

// envelope is the outer form of every answer.
type envelope struct {
	Server *sender         `json:"server"`
	Error  *refusal        `json:"error"`
	Data   json.RawMessage `json:"data"`
	Stats  json.RawMessage `json:"statsz"`
}

// errUnsigned is an answer that does not tell which server gave it.
var errUnsigned = errors.New("an answer does not say which server it is from")

// open reads the outer form. Whatever else is wrong, the sender is returned when
// the answer names one.
func open(data []byte) (envelope, error) {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return envelope{}, fmt.Errorf("an answer cannot be read: %w", err)
	}
	if e.Server == nil || e.Server.Name == "" || !IsServerID(e.Server.ID) {
		return envelope{}, errUnsigned
	}
	if e.Error != nil {
		return e, fmt.Errorf("server %s answers: %v", e.Server.Name, e.Error)
	}
	return e, nil
}

// IsServerID reports whether s is the id of a server's run.
func IsServerID(s string) bool { return nkeys.IsValidPublicServerKey(s) }

// row is one connection as the server writes it. What else it writes is nobody's
// business here, the user's JWT above all.
type row struct {
	ClientID uint64   `json:"cid"`
	Kind     string   `json:"kind"`
	Label    string   `json:"name"`
	User     string   `json:"authorized_user"`
	Account  string   `json:"account"`
	Tags     []string `json:"tags"`
}

// page is one server's connections of one account. Pointers tell what is missing.
type page struct {
	ServerID    string `json:"server_id"`
	Count       *int   `json:"num_connections"`
	Total       *int   `json:"total"`
	Offset      *int   `json:"offset"`
	Connections *[]row `json:"connections"`
}

// readPage reads a server's connections and makes sure that these are all of them.
// The rows that could be read are returned also when they are not.
func readPage(e envelope, account string) ([]row, error) {
	var p page
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return nil, fmt.Errorf("server %s: its connections cannot be read: %w", e.Server.Name, err)
	}
	problem := func(format string, args ...any) error {
		return fmt.Errorf("server %s: %s", e.Server.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case p.Connections == nil || p.Count == nil || p.Total == nil || p.Offset == nil:
		return nil, problem("its list of connections lacks a part")
	case p.ServerID != e.Server.ID:
		return nil, problem("its list of connections is of another server")
	}
	rows := *p.Connections
	if *p.Offset != 0 || *p.Count != len(rows) || *p.Total != len(rows) {
		return rows, problem("it lists %d of %d connections", len(rows), *p.Total)
	}
	seen := make(map[uint64]bool, len(rows))
	for _, r := range rows {
		switch {
		case r.ClientID == 0:
			return rows, problem("a connection has no number")
		case seen[r.ClientID]:
			return rows, problem("connection %d is listed twice", r.ClientID)
		case account != "" && r.Account != account:
			return rows, problem("connection %d is of another account", r.ClientID)
		case r.unnamed():
			return rows, problem("connection %d bears no name yet", r.ClientID)
		}
		seen[r.ClientID] = true
	}
	return rows, nil
}

// hiddenUser stands where a server does not show a token. A connection shows it
// for the moment between its admission and its name.
const hiddenUser = "[REDACTED]"

// leafNode is the kind of a link to another server, or from one.
const leafNode = "Leafnode"

// unnamed reports whether a connection may yet turn out to be anybody's. A link that
// the server itself opened has no name and never gets one; whoever came in by a link
// through the callout shows a token or a name from the start.
func (r row) unnamed() bool {
	return r.User == hiddenUser || r.User == "" && r.Kind != leafNode
}

// uid is the incarnation a connection was admitted for; empty unless there is
// exactly one.
func (r row) uid() string {
	var uid string
	for _, tag := range r.Tags {
		if value, ok := strings.CutPrefix(tag, "uid:"); ok {
			if uid != "" {
				return ""
			}
			uid = value
		}
	}
	return uid
}
