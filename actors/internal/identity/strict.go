package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// errUnknownField is what a field function answers for a member it does not know,
// where the object is closed.
var errUnknownField = errors.New("unknown member")

// readObject walks one JSON object and hands every member to field, by its exact
// name. It refuses what encoding/json lets pass: members given twice, names that
// differ only in case, broken UTF-8, anything behind the object, and the absence
// of a required member.
func readObject(data []byte, field func(name string, value json.RawMessage) error, required ...string) error {
	if !utf8.Valid(data) {
		return errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	seen := make(map[string]struct{}, 12)
	for dec.More() {
		if err := readMember(dec, seen, field); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errors.New("the JSON object does not end")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bytes behind the JSON object")
	}
	for _, name := range required {
		if _, given := seen[name]; !given {
			return fmt.Errorf("member %s is missing", name)
		}
	}
	return nil
}

func readMember(dec *json.Decoder, seen map[string]struct{}, field func(string, json.RawMessage) error) error {
	token, err := dec.Token()
	name, isName := token.(string)
	if err != nil || !isName {
		return errors.New("broken JSON")
	}
	if _, twice := seen[name]; twice {
		return errors.New("a member is given twice")
	}
	seen[name] = struct{}{}
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return errors.New("broken JSON")
	}
	if err := field(name, value); err != nil {
		return fmt.Errorf("member %.32q: %w", name, err)
	}
	return nil
}

// readString reads a JSON string and nothing that could become one.
func readString(value json.RawMessage, into *string) error {
	if len(value) == 0 || value[0] != '"' {
		return errors.New("not a string")
	}
	if err := json.Unmarshal(value, into); err != nil {
		return errors.New("broken string")
	}
	return nil
}

// readPresent reads a member that is left out rather than empty.
func readPresent(value json.RawMessage, into *string) error {
	if err := readString(value, into); err != nil {
		return err
	}
	if *into == "" {
		return errors.New("empty")
	}
	return nil
}

// readStrings reads a JSON array of at most limit strings.
func readStrings(value json.RawMessage, into *[]string, limit int) error {
	if len(value) == 0 || value[0] != '[' {
		return errors.New("not a list")
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(value, &raw); err != nil {
		return errors.New("broken list")
	}
	if len(raw) > limit {
		return fmt.Errorf("more than %d entries", limit)
	}
	list := make([]string, len(raw))
	for i, entry := range raw {
		if err := readString(entry, &list[i]); err != nil {
			return err
		}
	}
	*into = list
	return nil
}

// readInteger reads a whole number without sign, fraction or exponent, of at most
// 15 digits: every one of them is exact wherever it is read.
func readInteger(value json.RawMessage, into *int64) error {
	if len(value) == 0 || len(value) > 15 {
		return errors.New("not a whole number")
	}
	var n int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return errors.New("not a whole number")
		}
		n = n*10 + int64(c-'0')
	}
	*into = n
	return nil
}
