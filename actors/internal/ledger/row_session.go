package ledger

import (
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Session is the record that a session was redeemed, for two credentials that end
// together: the caller's, of an incarnation, and the server's, of a service instance.
type Session struct {
	ID string
	// Caller is whose incarnation UID is.
	Caller messages.Principal
	UID    string
	// Endpoint and Instance name who serves it, Epoch which process of it, and Server
	// whose connections that process has.
	Endpoint, Instance string
	Epoch              uint64
	Server             messages.Principal
	Expires            time.Time
}

// CallerCredential is the id of the caller's credential.
func (s Session) CallerCredential() string { return s.ID + "-c" }

// ServerCredential is the id of the server's credential.
func (s Session) ServerCredential() string { return s.ID + "-s" }

// sessionFields is the wire form of `session.<id>`, which is written once. W is
// drawn anew by whoever redeems: so one of two who present the same is refused.
type sessionFields struct {
	V            int    `json:"v"`
	ID           string `json:"id"`
	Caller       string `json:"caller"`
	UID          string `json:"uid"`
	Endpoint     string `json:"endpoint"`
	Instance     string `json:"instance"`
	ProcessEpoch uint64 `json:"processEpoch"`
	Server       string `json:"server"`
	Exp          int64  `json:"exp"` // ms since 1970
	W            string `json:"w"`
}

// EncodeSession writes a session. It refuses one that DecodeSession would not take.
func EncodeSession(s Session, witness string) ([]byte, error) {
	f := sessionFields{V: rowVersion, ID: s.ID, Caller: s.Caller.String(), UID: s.UID, Endpoint: s.Endpoint, Instance: s.Instance,
		ProcessEpoch: s.Epoch, Server: s.Server.String(), Exp: millis(s.Expires), W: witness}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("session %s: %s", s.ID, why)
	}
	return encode(f)
}

// DecodeSession reads a session, or says messages.RowCorrupt.
func DecodeSession(row Row) (Session, error) {
	var f sessionFields
	if err := decode(row, &f); err != nil {
		return Session{}, err
	}
	if why := f.fault(); why != "" {
		return Session{}, corrupt(row.Key, why)
	}
	if SessionKey(f.ID) != row.Key {
		return Session{}, corrupt(row.Key, "names another key")
	}
	caller, _ := names.ParsePrincipal(f.Caller) // fault has checked both
	server, _ := parseHolder(f.Server)
	return Session{ID: f.ID, Caller: caller, UID: f.UID, Endpoint: f.Endpoint, Instance: f.Instance, Epoch: f.ProcessEpoch,
		Server: server, Expires: instant(f.Exp)}, nil
}

func (f sessionFields) fault() string {
	_, err := parseHolder(f.Server)
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.ID) || len(f.ID) > maxSession:
		return "names no session"
	case names.CheckUID(f.UID) != nil:
		return "names no incarnation"
	case !isPrincipal(f.Caller), err != nil:
		return "the caller or the server is no principal"
	case !isToken(f.Endpoint), names.CheckUID(f.Instance) != nil:
		return "names no instance"
	case f.ProcessEpoch > largestNumber, !isInstant(f.Exp):
		return "a number is out of range"
	case names.CheckUID(f.W) != nil:
		return "names no witness"
	}
	return ""
}

// maxSession is the longest id of a session, in bytes.
const maxSession = 128
