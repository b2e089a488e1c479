package grants

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// Limits of one allowance.
const (
	MaxScope    = 64  // entries of the scope
	MaxPatterns = 256 // patterns, in each of the two lists
	MaxWord     = 64  // bytes of a scope entry, and of a role
)

// maxListed bounds how many problems one refusal spells out, and maxQuoted how
// much of a bad value it repeats: the text goes back to whoever sent the value.
const (
	maxListed = 16
	maxQuoted = 80
)

// CheckAllowance refuses an allowance that may not be written, with every problem
// listed at once (the first 16 spelled out). Empty lists are fine and mean nothing;
// a repeated entry counts once. The error is messages.Malformed.
func CheckAllowance(a messages.Allowance) error {
	var found findings
	found.scope(a.Scope)
	found.patterns("publish", a.Publish)
	found.patterns("subscribe", a.Subscribe)
	if a.Role != "" && !isWord(a.Role, isRoleByte) {
		found.add("role %s: not 1 to %d characters of [A-Za-z0-9_-]", quoted(a.Role), MaxWord)
	}
	return found.asError(messages.Malformed)
}

// CheckScopeWithin refuses a bearer whose scope holds an entry that the grant's
// scope does not. Order and repetition do not matter. The error is
// messages.ScopeExceeded.
func CheckScopeWithin(bearerScope, grantScope []string) error {
	var found findings
	for _, entry := range bearerScope {
		if !slices.Contains(grantScope, entry) {
			found.add("scope %s", quoted(entry))
		}
	}
	return found.asError(messages.ScopeExceeded)
}

func (f *findings) scope(entries []string) {
	if len(entries) > MaxScope {
		f.add("scope: %d entries, at most %d", len(entries), MaxScope)
		return
	}
	for _, entry := range entries {
		if !isWord(entry, isScopeByte) {
			f.add("scope %s: not 1 to %d characters of [A-Za-z0-9_:-]", quoted(entry), MaxWord)
		}
	}
}

func (f *findings) patterns(list string, patterns []string) {
	if len(patterns) > MaxPatterns {
		f.add("%s: %d patterns, at most %d", list, len(patterns), MaxPatterns)
		return
	}
	for _, pattern := range patterns {
		if fault := grantablePatternFault(pattern); fault != "" {
			f.add("%s pattern %s: %s", list, quoted(pattern), fault)
		}
	}
}

// findings collects problems, of which it spells out a bounded number.
type findings struct {
	listed []string
	total  int
}

func (f *findings) add(format string, args ...any) {
	f.total++
	if len(f.listed) < maxListed {
		f.listed = append(f.listed, fmt.Sprintf(format, args...))
	}
}

// asError is nil if nothing was found.
func (f *findings) asError(entry messages.Error) error {
	if f.total == 0 {
		return nil
	}
	text := strings.Join(f.listed, "; ")
	if more := f.total - len(f.listed); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return entry.Because("%s", text)
}

// quoted shows a value that came from outside, in ASCII and cut short.
func quoted(s string) string {
	if len(s) > maxQuoted {
		return strconv.QuoteToASCII(s[:maxQuoted]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

func isWord(s string, ok func(byte) bool) bool {
	if s == "" || len(s) > MaxWord {
		return false
	}
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isRoleByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

func isScopeByte(c byte) bool { return isRoleByte(c) || c == ':' }
