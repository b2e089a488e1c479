package face

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/messages"
)

// input is what a caller sent, by field name. Its schema is closed: each field is
// taken by the type it must have, and done refuses whatever was not taken. The
// first problem is kept, so that a handler may take all fields and ask once.
type input struct {
	fields map[string]json.RawMessage
	form   bool
	err    error
}

// readJSON reads exactly one object: no duplicate key, nothing behind it, names
// matched to the letter, text in valid UTF-8.
func readJSON(body []byte) (*input, error) {
	if !utf8.Valid(body) {
		return nil, messages.Malformed.Because("the body is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, messages.Malformed.Because("the body must be one JSON object")
	}
	in := &input{fields: map[string]json.RawMessage{}}
	for decoder.More() {
		if err := in.member(decoder); err != nil {
			return nil, err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, messages.Malformed.Because("the body is not whole JSON")
	}
	if rest := body[decoder.InputOffset():]; len(bytes.Trim(rest, " \t\r\n")) != 0 {
		return nil, messages.Malformed.Because("something stands behind the JSON object")
	}
	return in, nil
}

// member reads one name and its value. No field of ours is an object, so a value
// has no names of its own that could stand twice.
func (in *input) member(decoder *json.Decoder) error {
	token, err := decoder.Token()
	name, isName := token.(string)
	if err != nil || !isName {
		return messages.Malformed.Because("the body is not JSON")
	}
	if _, twice := in.fields[name]; twice {
		return messages.Malformed.Because("field %s stands twice", printable(name))
	}
	var value json.RawMessage
	if err := decoder.Decode(&value); err != nil {
		return messages.Malformed.Because("the value of field %s is not JSON", printable(name))
	}
	in.fields[name] = value
	return nil
}

// readForm reads a form. A parameter that stands twice is refused.
func readForm(body []byte) (*input, error) {
	if !utf8.Valid(body) {
		return nil, messages.Malformed.Because("the body is not UTF-8")
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, messages.Malformed.Because("the body is not a form")
	}
	in := &input{fields: make(map[string]json.RawMessage, len(values)), form: true}
	for name, given := range values {
		if len(given) != 1 {
			return nil, messages.Malformed.Because("parameter %s stands twice", printable(name))
		}
		if !utf8.ValidString(given[0]) || !utf8.ValidString(name) {
			return nil, messages.Malformed.Because("parameter %s is not UTF-8", printable(name))
		}
		in.fields[name] = json.RawMessage(given[0])
	}
	return in, nil
}

// has reports whether the field was sent.
func (in *input) has(name string) bool {
	_, present := in.fields[name]
	return present
}

// text takes a string; absent is empty.
func (in *input) text(name string) string {
	raw, present := in.take(name)
	if !present {
		return ""
	}
	if in.form {
		return string(raw)
	}
	var value string
	if raw[0] != '"' || json.Unmarshal(raw, &value) != nil {
		in.refuse("field %s must be a string", name)
	}
	return value
}

// integer takes a whole number written as one (no fraction, no exponent) that
// lies between low and high; absent is otherwise.
func (in *input) integer(name string, low, high, otherwise int64) int64 {
	raw, present := in.take(name)
	if !present {
		return otherwise
	}
	value, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || value < low || value > high || strconv.FormatInt(value, 10) != string(raw) {
		in.refuse("field %s must be an integer from %d to %d", name, low, high)
		return otherwise
	}
	return value
}

// flag takes true or false; absent is false.
func (in *input) flag(name string) bool {
	raw, present := in.take(name)
	if present && string(raw) != "true" && string(raw) != "false" {
		in.refuse("field %s must be true or false", name)
	}
	return string(raw) == "true"
}

// texts takes a list of strings; absent is the empty list, which means nothing.
func (in *input) texts(name string) []string {
	raw, present := in.take(name)
	if !present {
		return []string{}
	}
	var pointers []*string
	if in.form || raw[0] != '[' || json.Unmarshal(raw, &pointers) != nil || slices.Contains(pointers, nil) {
		in.refuse("field %s must be a list of strings", name)
		return []string{}
	}
	values := make([]string, len(pointers))
	for i, p := range pointers {
		values[i] = *p
	}
	return values
}

// done refuses a field nobody took, and otherwise tells the first problem.
func (in *input) done() error {
	if in.err != nil {
		return in.err
	}
	unknown := make([]string, 0, len(in.fields))
	for name := range in.fields {
		unknown = append(unknown, printable(name))
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return messages.Malformed.Because("unknown field %s", strings.Join(unknown[:min(3, len(unknown))], ", "))
}

func (in *input) take(name string) (json.RawMessage, bool) {
	raw, present := in.fields[name]
	delete(in.fields, name)
	return raw, present
}

func (in *input) refuse(format string, args ...any) {
	if in.err == nil {
		in.err = messages.Malformed.Because(format, args...)
	}
}

// printable shortens and quotes a name somebody else chose.
func printable(name string) string {
	const most = 40
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
