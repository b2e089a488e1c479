package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/cotal-ai/authplane/messages"
)

// What is digested begins with what it is for, so that none is ever taken for another.
const (
	receiptPrefix = "receipt\n"
	requestPrefix = "request\n"
	nameBytes     = 8
)

// receiptFields is everything that a receipt vouches for.
type receiptFields struct {
	V            int                     `json:"v"`
	Space        string                  `json:"space"`
	Owner        string                  `json:"owner"`
	Actor        string                  `json:"actor"`
	Endpoint     string                  `json:"endpoint"`
	Instance     string                  `json:"instance"`
	Principal    string                  `json:"principal"`
	Keys         messages.ControllerKeys `json:"keys"`
	Registration uint64                  `json:"registration"`
	Epoch        uint64                  `json:"epoch"`
}

// receiptOf is the receipt of a registration for who runs it, with these keys.
func (c Config) receiptOf(holder messages.Principal, gate messages.Instance, keys messages.ControllerKeys) messages.Secret {
	mac := hmac.New(sha256.New, []byte(c.ReceiptKey.Reveal()))
	mac.Write([]byte(receiptPrefix))
	mac.Write(encoded(receiptFields{V: 1, Space: c.Space, Owner: holder.Owner, Actor: holder.Actor, Endpoint: gate.Endpoint,
		Instance: gate.Name, Principal: gate.Principal.String(), Keys: keys, Registration: gate.RegistrationRevision, Epoch: gate.Epoch}))
	return messages.NewSecret(hex.EncodeToString(mac.Sum(nil)))
}

// checkReceipt is the one comparison there is, in constant time.
func checkReceipt(want, shown messages.Secret) error {
	if !hmac.Equal([]byte(want.Reveal()), []byte(shown.Reveal())) {
		return messages.ReceiptInvalid
	}
	return nil
}

// requestFields is everything that is asked, and who asks.
type requestFields struct {
	Holder    string                     `json:"holder"`
	Door      messages.ControllerDoor    `json:"door"`
	Space     string                     `json:"space"`
	Endpoint  string                     `json:"endpoint"`
	Instance  string                     `json:"instance"`
	Epoch     uint64                     `json:"epoch"`
	ID        string                     `json:"id"`
	Keys      messages.ControllerKeys    `json:"keys"`
	Commands  []string                   `json:"commands"`
	Receipt   string                     `json:"receipt"`
	Session   messages.ControllerSession `json:"session"`
	Ends      int64                      `json:"ends"`
	Target    string                     `json:"target"`
	UID       string                     `json:"uid"`
	Operation string                     `json:"operation"`
	User      string                     `json:"user"`
}

// digestOf tells a request from every other one.
func digestOf(holder messages.Principal, r messages.ControllerRequest) string {
	f := requestFields{Holder: holder.String(), Door: r.Door, Space: r.Space, Endpoint: r.Endpoint, Instance: r.Instance, Epoch: r.Epoch,
		ID: r.ID, Keys: r.Keys, Commands: r.Commands, Receipt: r.Receipt.Reveal(), Session: r.Session, Ends: r.Session.Expires.UnixMilli(),
		Target: r.Target.Principal.String(), UID: r.Target.UID, Operation: r.Target.Operation, User: r.Target.User}
	f.Session.Expires = f.Session.Expires.UTC() // one instant has one form
	sum := sha256.Sum256(append([]byte(requestPrefix), encoded(f)...))
	return hex.EncodeToString(sum[:])
}

// nameOf is a part of a credential's id that no other request has.
func nameOf(digest string, issued int64) string {
	sum := sha256.Sum256(encoded([]any{"credential", digest, issued}))
	return hex.EncodeToString(sum[:nameBytes])
}

// encoded writes a value of ours, which always can be.
func encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
