package controller

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/messages"
)

// MaxEnvelope is the largest request, in bytes.
const MaxEnvelope = 16 << 10

// maxReceipt is longer than any receipt.
const maxReceipt = 128

// Parse reads what a controller sends to a door: one JSON object whose members are
// exactly those of the door, each once. It is refused with messages.Malformed; what it
// returns has passed Check.
func Parse(door messages.ControllerDoor, body []byte) (messages.ControllerRequest, error) {
	r := messages.ControllerRequest{Door: door}
	if len(body) > MaxEnvelope || !utf8.Valid(body) {
		return r, messages.Malformed.Because("a request is at most %d bytes of UTF-8", MaxEnvelope)
	}
	e := envelope{request: &r}
	want := []string{"v", "space", "actor", "endpoint", "instance", "epoch", "request_id", "keys"}
	switch door {
	case messages.DoorPrepare:
	case messages.DoorActivate:
		want = append(want, "commands")
	case messages.DoorRenew:
		want = append(want, "receipt")
	case messages.DoorSession:
		want = append(want, "receipt", "session")
	case messages.DoorRetire:
		want = append(want, "receipt", "target")
	default:
		return r, messages.Malformed.Because("there is no such door")
	}
	if err := object(body, "", want, e.member); err != nil {
		return r, err
	}
	return r, Check(r)
}

// object reads one JSON object with exactly these members, each once and nothing behind.
func object(body []byte, of string, want []string, member func(name string, value json.RawMessage) error) error {
	return objectWith(body, of, want, nil, member)
}

// objectWith is object for one that may have some members besides.
func objectWith(body []byte, of string, want, may []string, member func(name string, value json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return messages.Malformed.Because("%smust be one JSON object", of)
	}
	met := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		switch {
		case err != nil || !isName:
			return messages.Malformed.Because("%sis not JSON", of)
		case met[name]:
			return messages.Malformed.Because("%s%s stands twice", of, strconv.Quote(shortened(name)))
		case !slices.Contains(want, name) && !slices.Contains(may, name):
			return messages.Malformed.Because("%s%s does not belong here", of, strconv.Quote(shortened(name)))
		}
		met[name] = true
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return messages.Malformed.Because("%sis not JSON", of)
		}
		if err := member(name, value); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil || len(bytes.Trim(body[decoder.InputOffset():], " \t\r\n")) != 0 {
		return messages.Malformed.Because("%sis not one JSON object and nothing else", of)
	}
	for _, name := range want {
		if !met[name] {
			return messages.Malformed.Because("%s%s is missing", of, name)
		}
	}
	return nil
}

func shortened(name string) string {
	const most = 40
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "")
	}
	return name
}

// envelope fills a request.
type envelope struct{ request *messages.ControllerRequest }

func (e envelope) member(name string, value json.RawMessage) error {
	r := e.request
	switch name {
	case "v":
		if string(value) != "1" {
			return messages.Malformed.Because("v must be 1")
		}
		return nil
	case "space":
		return text(name, value, &r.Space)
	case "actor":
		return text(name, value, &r.Actor)
	case "endpoint":
		return text(name, value, &r.Endpoint)
	case "instance":
		return text(name, value, &r.Instance)
	case "epoch":
		return number(name, value, &r.Epoch)
	case "request_id":
		return text(name, value, &r.ID)
	case "keys":
		return object(value, "keys: ", []string{"supervisor", "executor", "server", "recorder", "ledger"}, e.key)
	case "commands":
		return texts(name, value, &r.Commands)
	case "receipt":
		return secret(name, value, &r.Receipt)
	case "session":
		return object(value, "session: ", []string{"id", "user", "expires_at"}, e.session)
	default:
		return object(value, "target: ", []string{"owner", "actor", "uid", "op_id", "user"}, e.target)
	}
}

func (e envelope) key(name string, value json.RawMessage) error {
	keys := &e.request.Keys
	into := map[string]*string{"supervisor": &keys.Supervisor, "executor": &keys.Executor, "server": &keys.Server,
		"recorder": &keys.Recorder, "ledger": &keys.Ledger}
	return text(name, value, into[name])
}

// session has its end as RFC 3339, in UTC or elsewhere.
func (e envelope) session(name string, value json.RawMessage) error {
	s := &e.request.Session
	switch name {
	case "id":
		return text(name, value, &s.ID)
	case "user":
		return text(name, value, &s.User)
	}
	var at string
	if err := text(name, value, &at); err != nil {
		return err
	}
	ends, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return messages.Malformed.Because("expires_at is not a time as RFC 3339 writes it")
	}
	s.Expires = ends.UTC().Truncate(time.Millisecond)
	return nil
}

func (e envelope) target(name string, value json.RawMessage) error {
	t := &e.request.Target
	into := map[string]*string{"owner": &t.Principal.Owner, "actor": &t.Principal.Actor, "uid": &t.UID, "op_id": &t.Operation, "user": &t.User}
	return text(name, value, into[name])
}

func text(name string, value json.RawMessage, into *string) error {
	if value[0] != '"' || json.Unmarshal(value, into) != nil || *into == "" {
		return messages.Malformed.Because("%s must be a string that is not empty", name)
	}
	return nil
}

func secret(name string, value json.RawMessage, into *messages.Secret) error {
	var plain string
	if err := text(name, value, &plain); err != nil {
		return err
	}
	if len(plain) > maxReceipt {
		return messages.Malformed.Because("%s is too long", name)
	}
	*into = messages.NewSecret(plain)
	return nil
}

func number(name string, value json.RawMessage, into *uint64) error {
	n, err := strconv.ParseUint(string(value), 10, 53)
	if err != nil || strconv.FormatUint(n, 10) != string(value) {
		return messages.Malformed.Because("%s must be a whole number", name)
	}
	*into = n
	return nil
}

func texts(name string, value json.RawMessage, into *[]string) error {
	var pointers []*string
	if value[0] != '[' || json.Unmarshal(value, &pointers) != nil || slices.Contains(pointers, nil) {
		return messages.Malformed.Because("%s must be a list of strings", name)
	}
	for _, p := range pointers {
		*into = append(*into, *p)
	}
	slices.Sort(*into)
	return nil
}
