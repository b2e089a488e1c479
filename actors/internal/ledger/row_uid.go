package ledger

import (
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// uidFields is the wire form of `uid.<uid>`. The uid itself stands in the row too,
// so that it rebuilds its key.
type uidFields struct {
	V     int    `json:"v"`
	UID   string `json:"uid"`
	Owner string `json:"owner"`
	Actor string `json:"actor"`
	By    string `json:"by"`
}

// Reservation says whose an incarnation's name is, for ever.
type Reservation struct {
	UID       string
	Principal messages.Principal
	// By is the instance that wrote it.
	By string
}

// EncodeReservation writes a reservation. It refuses one that DecodeReservation
// would not take.
func EncodeReservation(r Reservation) ([]byte, error) {
	f := uidFields{V: rowVersion, UID: r.UID, Owner: r.Principal.Owner, Actor: r.Principal.Actor, By: r.By}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("reservation of %s: %s", r.UID, why)
	}
	return encode(f)
}

// DecodeReservation reads a reservation, or says messages.RowCorrupt.
func DecodeReservation(row Row) (Reservation, error) {
	var f uidFields
	if err := decode(row, &f); err != nil {
		return Reservation{}, err
	}
	if why := f.fault(); why != "" {
		return Reservation{}, corrupt(row.Key, why)
	}
	if UIDKey(f.UID) != row.Key {
		return Reservation{}, corrupt(row.Key, "names another key")
	}
	return Reservation{UID: f.UID, Principal: messages.Principal{Owner: f.Owner, Actor: f.Actor}, By: f.By}, nil
}

func (f uidFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case names.CheckUID(f.UID) != nil:
		return "names no incarnation"
	case names.CheckPrincipal(messages.Principal{Owner: f.Owner, Actor: f.Actor}) != nil:
		return "names no principal"
	case !isText(f.By) || f.By == "":
		return "names no writer"
	}
	return ""
}
