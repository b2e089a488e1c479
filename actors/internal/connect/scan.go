package connect

import (
	"encoding/json"
	"errors"
)

// maxNesting bounds how deep a value may nest.
const maxNesting = 32

var errScan = errors.New("its claims cannot be read")

// scanner reads the members of JSON objects one after another, without building
// what nobody asks for: most of a request's claims decide nothing. Values that are
// skipped are not checked beyond where they end.
type scanner struct {
	data  []byte
	at    int
	depth int
}

// object reads an object and calls member for each name. The call must read or
// skip the value. The name is valid during the call alone.
func (s *scanner) object(member func(name []byte) error) error {
	if s.depth++; s.depth > maxNesting || !s.take('{') {
		return errScan
	}
	defer func() { s.depth-- }()
	if s.take('}') {
		return nil
	}
	for {
		name, plain, ok := s.quoted()
		if !ok || !plain || !s.take(':') {
			return errScan
		}
		if err := member(name[1 : len(name)-1]); err != nil {
			return err
		}
		switch {
		case s.take(','):
		case s.take('}'):
			return nil
		default:
			return errScan
		}
	}
}

// text reads a string.
func (s *scanner) text(into *string) error {
	raw, plain, ok := s.quoted()
	switch {
	case !ok:
		return errScan
	case plain:
		*into = string(raw[1 : len(raw)-1])
		return nil
	case json.Unmarshal(raw, into) != nil:
		return errScan
	}
	return nil
}

// number reads a whole number of up to nine digits.
func (s *scanner) number(into *int) error {
	s.blank()
	start, n := s.at, 0
	for ; s.at < len(s.data) && s.at-start < 9; s.at++ {
		c := s.data[s.at]
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	if s.at == start {
		return errScan
	}
	*into = n
	return nil
}

// skip passes over a value of any kind.
func (s *scanner) skip() error {
	s.blank()
	for nesting, start := 0, s.at; s.at < len(s.data); {
		switch c := s.data[s.at]; c {
		case '"':
			if _, _, ok := s.quoted(); !ok {
				return errScan
			}
		case '{', '[':
			nesting++
			s.at++
		case '}', ']', ',':
			if nesting == 0 {
				if s.at == start {
					return errScan // no value at all
				}
				return nil
			}
			if c != ',' {
				nesting--
			}
			s.at++
		default:
			s.at++
		}
	}
	return errScan
}

// end reports whether nothing follows.
func (s *scanner) end() bool {
	s.blank()
	return s.at == len(s.data)
}

// quoted reads a string as it is written, quotes included. It is plain if it means
// what it says: printable ASCII without escapes.
func (s *scanner) quoted() (raw []byte, plain, ok bool) {
	s.blank()
	start := s.at
	if start >= len(s.data) || s.data[start] != '"' {
		return nil, false, false
	}
	plain = true
	for i := start + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.at = i + 1
			return s.data[start:s.at], plain, true
		case c == '\\':
			plain = false
			i++ // whatever is escaped does not end the string
		case c < ' ':
			return nil, false, false
		case c > '~':
			plain = false
		}
	}
	return nil, false, false
}

// take passes over the byte if it comes next.
func (s *scanner) take(c byte) bool {
	s.blank()
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) blank() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}
