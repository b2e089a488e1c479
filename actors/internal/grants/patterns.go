package grants

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/messages"
)

// MaxPatternBytes is the longest subject pattern a grant may list.
const MaxPatternBytes = 256

const (
	anyToken = "*"
	anyTail  = ">"
)

// Covers reports whether every subject that pattern matches is matched by capability
// also. Both are NATS subject patterns. A malformed one on either side, such as
// `a.>.b`, covers nothing and is covered by nothing.
//
// `a.>` does not cover `a`, `*` does not cover `>`, and `*.>` covers `a.>` and
// `a.b` but not `a`. The first-token rule of CheckPattern plays no part here.
func Covers(capability, pattern string) bool {
	if patternFault(capability) != "" || patternFault(pattern) != "" {
		return false
	}
	return covers(capability, pattern)
}

// covers is Covers for two patterns that are known to be well formed.
func covers(capability, pattern string) bool {
	for {
		own, ownRest, ownMore := strings.Cut(capability, ".")
		asked, askedRest, askedMore := strings.Cut(pattern, ".")
		switch {
		case own == anyTail:
			return true // the pattern still has at least this token
		case asked == anyTail:
			return false
		case own == anyToken:
		case own != asked: // also where only the pattern has a `*`
			return false
		}
		if !ownMore || !askedMore {
			return ownMore == askedMore
		}
		capability, pattern = ownRest, askedRest
	}
}

// Overlap reports whether some subject is matched by both patterns. A malformed one
// matches nothing.
func Overlap(a, b string) bool {
	if patternFault(a) != "" || patternFault(b) != "" {
		return false
	}
	for {
		one, aRest, aMore := strings.Cut(a, ".")
		other, bRest, bMore := strings.Cut(b, ".")
		switch {
		case one == anyTail || other == anyTail:
			return true // the other one still has at least this token
		case one != other && one != anyToken && other != anyToken:
			return false
		case !aMore || !bMore:
			return aMore == bMore
		}
		a, b = aRest, bRest
	}
}

// CheckPattern refuses what may not stand in a grant's publish or subscribe list:
// a malformed pattern, one longer than MaxPatternBytes, or one whose first token
// is a wildcard or belongs to the servers or to this service. The error is
// messages.Malformed.
func CheckPattern(pattern string) error {
	if fault := grantablePatternFault(pattern); fault != "" {
		return messages.Malformed.Because("pattern %s: %s", quoted(pattern), fault)
	}
	return nil
}

// grantablePatternFault says in words what keeps a pattern out of a grant; empty
// if nothing does.
func grantablePatternFault(pattern string) string {
	if fault := patternFault(pattern); fault != "" {
		return fault
	}
	first, _, _ := strings.Cut(pattern, ".")
	switch {
	case first == anyToken || first == anyTail:
		return "the first token may not be a wildcard"
	case strings.HasPrefix(first, "$"), strings.HasPrefix(first, "_INBOX"),
		first == "_R_", first == "cotal", first == "ep":
		return "the first token is reserved"
	}
	return ""
}

// patternFault says in words why a pattern is malformed; empty if it is not.
func patternFault(pattern string) string {
	switch {
	case pattern == "":
		return "it is empty"
	case len(pattern) > MaxPatternBytes:
		return "it is too long"
	case !printable(pattern):
		return "it holds a space, or a character that cannot be printed"
	}
	for rest, more := pattern, true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		switch {
		case token == "":
			return "it has an empty token"
		case token == anyTail && more:
			return "only the last token may be >"
		case len(token) > 1 && strings.ContainsAny(token, anyToken+anyTail):
			return "a wildcard must be a whole token"
		}
	}
	return ""
}

// printable reports whether s is valid UTF-8 made of visible characters alone.
func printable(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c <= ' ' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) {
			return false
		}
		i += size
	}
	return true
}
