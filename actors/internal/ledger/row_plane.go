package ledger

import (
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// planeFields is the wire form of `plane`.
type planeFields struct {
	V          int         `json:"v"`
	Generation uint64      `json:"generation"`
	ClaimID    string      `json:"claimId"`
	State      string      `json:"state"`
	Ledger     tupleFields `json:"ledger"`
	Records    tupleFields `json:"records"`
	OpenedAt   int64       `json:"openedAt"` // ms since 1970
	Host       string      `json:"host"`
}

type tupleFields struct {
	ServerName string `json:"serverName"`
	ServerID   string `json:"serverId"`
	CID        uint64 `json:"cid"`
	UserNkey   string `json:"userNkey"`
}

// EncodeClaim writes a claim. It refuses one that DecodeClaim would not take.
func EncodeClaim(c messages.Claim) ([]byte, error) {
	f := planeFields{V: rowVersion, Generation: c.Generation, ClaimID: c.ID, State: string(c.State),
		Ledger: tupleOf(c.Ledger), Records: tupleOf(c.Records), OpenedAt: millis(c.OpenedAt), Host: c.Host}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("claim %s: %s", c.ID, why)
	}
	return encode(f)
}

// DecodeClaim reads a claim, or says messages.RowCorrupt.
func DecodeClaim(row Row) (messages.Claim, error) {
	var f planeFields
	if err := decode(row, &f); err != nil {
		return messages.Claim{}, err
	}
	if why := f.fault(); why != "" {
		return messages.Claim{}, corrupt(row.Key, why)
	}
	if row.Key != PlaneKey {
		return messages.Claim{}, corrupt(row.Key, "names another key")
	}
	return messages.Claim{Generation: f.Generation, ID: f.ClaimID, State: messages.ClaimState(f.State),
		Ledger: f.Ledger.value(), Records: f.Records.value(), OpenedAt: instant(f.OpenedAt), Host: f.Host}, nil
}

func (f planeFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isCount(f.Generation), !isInstant(f.OpenedAt):
		return "a number is out of range"
	case names.CheckUID(f.ClaimID) != nil:
		return "names no claim"
	case f.State != string(messages.ClaimHeld) && f.State != string(messages.ClaimFree):
		return "unknown state"
	case !f.Ledger.isWhole() || !f.Records.isWhole():
		return "names no connection"
	case f.Ledger.UserNkey == f.Records.UserNkey:
		return "the scanners are one connection"
	case f.Host == "" || !isText(f.Host):
		return "names no host"
	}
	return ""
}

func tupleOf(t messages.ConnectionTuple) tupleFields {
	return tupleFields{ServerName: t.ServerName, ServerID: t.ServerID, CID: t.ClientID, UserNkey: t.User}
}

func (t tupleFields) value() messages.ConnectionTuple {
	return messages.ConnectionTuple{ServerName: t.ServerName, ServerID: t.ServerID, ClientID: t.CID, User: t.UserNkey}
}

// isWhole reports whether the fields can name a connection.
func (t tupleFields) isWhole() bool {
	return t.ServerName != "" && isText(t.ServerName) && isToken(t.ServerID) && isCount(t.CID) && isUserNkey(t.UserNkey)
}

// userNkeyLength is that of the public key of a user, `U` and base32.
const userNkeyLength = 56

func isUserNkey(s string) bool {
	if len(s) != userNkeyLength || s[0] != 'U' {
		return false
	}
	for _, c := range []byte(s) {
		if !('A' <= c && c <= 'Z' || '2' <= c && c <= '7') {
			return false
		}
	}
	return true
}
