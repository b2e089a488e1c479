package rail

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// maxBody is the largest body, in bytes.
	maxBody = 1024
	// defaultWait is how long a caller waits who does not say; MaxWait is the longest:
	// the server forgets two minutes after a request whom an answer is for.
	defaultWait = 10 * time.Second
	// MaxWait is in whole milliseconds on the wire.
	MaxWait = time.Minute
)

// asked is what a request says.
type asked struct {
	target messages.Principal
	uid    string
	// op is empty where it was left out.
	op   string
	wait time.Duration
}

// read reads the target from the subject and the rest from the body: nothing, or
// one object with op_id and wait_ms, each of which may be left out.
func (r *Rail) read(q Question) (asked, error) {
	ask := asked{wait: defaultWait}
	tokens := strings.Split(strings.TrimPrefix(q.Subject, strings.TrimSuffix(broker.AnyRetireSubject(r.config.Space), "*.*.*")), ".")
	if len(tokens) != 3 {
		return ask, messages.Malformed.Because("the subject names no target")
	}
	ask.target, ask.uid = messages.Principal{Owner: tokens[0], Actor: tokens[1]}, tokens[2]
	if err := names.CheckPrincipal(ask.target); err != nil {
		return ask, err
	}
	if err := names.CheckUID(ask.uid); err != nil {
		return ask, err
	}
	switch {
	case len(q.Body) == 0:
		return ask, nil
	case len(q.Body) > maxBody || !utf8.Valid(q.Body):
		return ask, messages.Malformed.Because("the body is at most %d bytes of JSON", maxBody)
	}
	return ask, ask.members(q.Body)
}

// members reads exactly one object: no member twice, none that is unknown, nothing
// behind it.
func (a *asked) members(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return messages.Malformed.Because("the body must be one JSON object")
	}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || seen[name] || decoder.Decode(&value) != nil {
			return messages.Malformed.Because("the body cannot be read, or a member stands twice")
		}
		seen[name] = true
		if err := a.member(name, value); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil || len(bytes.TrimSpace(body[decoder.InputOffset():])) != 0 {
		return messages.Malformed.Because("the body is not one JSON object and nothing else")
	}
	return nil
}

func (a *asked) member(name string, value json.RawMessage) error {
	switch name {
	case "op_id":
		if value[0] != '"' || json.Unmarshal(value, &a.op) != nil || a.op == "" {
			return messages.Malformed.Because("op_id is a string")
		}
	case "wait_ms":
		most := MaxWait.Milliseconds()
		ms, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || ms < 0 || ms > most || strconv.FormatInt(ms, 10) != string(value) {
			return messages.Malformed.Because("wait_ms is an integer from 0 to %d", most)
		}
		a.wait = time.Duration(ms) * time.Millisecond
	default:
		return messages.Malformed.Because("the members are op_id and wait_ms")
	}
	return nil
}
