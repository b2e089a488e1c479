package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxMembers bounds the members of an object, or the entries of a list.
const maxMembers = 256

// errUnknownField is what a field function answers for a member it does not know,
// where the object is closed.
var errUnknownField = errors.New("unknown member")

// readObject walks one JSON object and hands every member to field, by its exact
// name. It refuses what encoding/json lets pass: members given twice, names that
// differ only in case, broken UTF-8, anything behind the object, and the absence
// of a required member. Bearers are read with it at every connect, so it copies
// nothing but the names.
func readObject(data []byte, field func(name string, value json.RawMessage) error, required ...string) error {
	if !utf8.Valid(data) || !json.Valid(data) {
		return errors.New("broken JSON")
	}
	return walkObject(data, field, required...)
}

// walkObject is readObject for a value inside what was found to be valid.
func walkObject(data json.RawMessage, field func(name string, value json.RawMessage) error, required ...string) error {
	s, err := newScanner(data, '{')
	if err != nil {
		return err
	}
	seen := make([]string, 0, 12)
	for s.more('}') {
		var name string
		if err := readString(s.value(), &name); err != nil {
			return err
		}
		if len(seen) == maxMembers || slices.Contains(seen, name) {
			return errors.New("a member is given twice, or there are too many")
		}
		seen = append(seen, name)
		s.step() // the colon
		if err := field(name, s.value()); err != nil {
			return fmt.Errorf("member %.32q: %w", name, err)
		}
	}
	for _, name := range required {
		if !slices.Contains(seen, name) {
			return fmt.Errorf("member %s is missing", name)
		}
	}
	return nil
}

// walkList walks a list of at most limit entries inside what was found to be valid.
func walkList(data json.RawMessage, limit int, entry func(value json.RawMessage) error) error {
	s, err := newScanner(data, '[')
	if err != nil {
		return err
	}
	for count := 0; s.more(']'); count++ {
		if count == limit {
			return fmt.Errorf("more than %d entries", limit)
		}
		if err := entry(s.value()); err != nil {
			return err
		}
	}
	return nil
}

// scanner cuts one object or list into its values. It runs over text that was
// found to be valid JSON, and therefore only has to find where values end.
type scanner struct {
	rest []byte
}

func newScanner(data []byte, opening byte) (scanner, error) {
	s := scanner{rest: data}
	s.space()
	if s.rest[0] != opening {
		return s, fmt.Errorf("it does not begin with %c", opening)
	}
	s.step()
	return s, nil
}

// more steps over a comma and reports whether a value follows before the end.
func (s *scanner) more(closing byte) bool {
	s.space()
	if s.rest[0] == ',' {
		s.step()
	}
	return s.rest[0] != closing
}

// step steps over one byte, and the space around it.
func (s *scanner) step() {
	s.space()
	s.rest = s.rest[1:]
	s.space()
}

func (s *scanner) space() {
	for len(s.rest) > 0 && bytes.IndexByte([]byte(" \t\r\n"), s.rest[0]) >= 0 {
		s.rest = s.rest[1:]
	}
}

// value cuts off the next value.
func (s *scanner) value() json.RawMessage {
	s.space()
	end, depth := 0, 0
	for {
		switch s.rest[end] {
		case '"':
			end = stringEnd(s.rest, end)
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.cut(end)
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.cut(end)
			}
		}
		end++
		if end == len(s.rest) {
			return s.cut(end)
		}
	}
}

func (s *scanner) cut(end int) json.RawMessage {
	value := s.rest[:end:end]
	s.rest = s.rest[end:]
	return json.RawMessage(value)
}

// stringEnd gives the index of the quote that ends the string beginning at start.
func stringEnd(text []byte, start int) int {
	for i := start + 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
}

// readString reads a JSON string and nothing that could become one. The value was
// found to be valid JSON.
func readString(value json.RawMessage, into *string) error {
	if len(value) < 2 || value[0] != '"' {
		return errors.New("not a string")
	}
	if bytes.IndexByte(value, '\\') < 0 {
		*into = string(value[1 : len(value)-1])
		return nil
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

// readStrings reads a list of at most limit strings.
func readStrings(value json.RawMessage, into *[]string, limit int) error {
	list := make([]string, 0, 8)
	err := walkList(value, limit, func(entry json.RawMessage) error {
		list = append(list, "")
		return readString(entry, &list[len(list)-1])
	})
	*into = list
	return err
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
