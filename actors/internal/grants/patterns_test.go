package grants_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/messages"
)

func TestCovers(t *testing.T) {
	cases := []struct {
		capability, pattern string
		want                bool
	}{
		{">", ">", true}, {">", "*", true}, {">", "a", true}, {">", "a.b.>", true}, {">", "*.>", true},
		{"a.>", "a", false}, {"a.>", "a.b", true}, {"a.>", "a.*", true}, {"a.>", "a.>", true}, {"a.>", "b.>", false},
		{"*", ">", false}, {"*", "*", true}, {"*", "a", true}, {"*", "a.b", false},
		{"*.>", "a.>", true}, {"*.>", "a.b", true}, {"*.>", "a", false}, {"*.>", ">", false},
		{"a.*", "a.*", true}, {"a.*", "a.b", true}, {"a.*", "a.>", false}, {"a.*", "a.b.c", false},
		{"a", "*", false}, {"a.b", "a.*", false}, {"a.b", "a.b", true}, {"a.b", "a", false}, {"a", "a.b", false},
		{"review.pua", "review.>", false}, {"review.>", "review.>", true},
		{"a.>.b", "a.x.b", false}, {"a.>.b", "a.>.b", false}, {">", "a.>.b", false}, {">.a", "a.a", false},
		{">", "", false}, {"", "", false}, {"", "a", false}, {">", "a..b", false}, {"a..b", "a..b", false},
		{">", ".a", false}, {">", "a.", false}, {">", "a b", false}, {">", "a\x00", false}, {">", "a*", false},
		{"a*", "ab", false}, {">", "a.>>", false}, {">", "a.\xff", false}, {">", "é.a", true},
		{">", strings.Repeat("a", 257), false},
	}
	for _, c := range cases {
		if got := grants.Covers(c.capability, c.pattern); got != c.want {
			t.Errorf("Covers(%q, %q) = %v, want %v", c.capability, c.pattern, got, c.want)
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for _, good := range []string{"a", "a.b", "a.*", "a.>", "a.*.b.>", "é.x", "_INBO.x", "cotal2.a", "epx", "_R", "_R_x.a",
		strings.Repeat("a", 256)} {
		if err := grants.CheckPattern(good); err != nil {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", ">", "*", "*.a", "$SYS.>", "$JS.API.>", "$KV.x", "$", "$SRV.PING", "_INBOX.>", "_INBOX_u_x.>",
		"_INBOXES.a", "_R_.a", "_R_", "cotal.a", "cotal", "ep.x", "ep", ".a", "a.", "a..b", "a.>.b", "a b", "a\tb", "a\n", "a\x00b",
		"a\u2028b", "a\u00a0b", "a\u200bb", "a\xff", "a*", "a.b>", strings.Repeat("a", 257)} {
		if err := grants.CheckPattern(bad); !errors.Is(err, messages.Malformed) {
			t.Errorf("%q: got %v, want %v", bad, err, messages.Malformed)
		}
	}
}

// What covers says must hold for the broker's own matcher: that one decides in the end.
func TestCoversHoldsForTheBroker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capability, pattern := drawPattern(t, "capability"), drawPattern(t, "pattern")
		covered := grants.Covers(capability, pattern)
		if covered != server.SubjectMatchesFilter(pattern, capability) {
			t.Fatalf("Covers(%q, %q) = %v, the broker says otherwise", capability, pattern, covered)
		}
		subject := drawSubject(t, pattern)
		if !server.SubjectMatchesFilter(subject, pattern) {
			t.Fatalf("drew %q, which does not match %q", subject, pattern)
		}
		if covered && !server.SubjectMatchesFilter(subject, capability) {
			t.Fatalf("%q covers %q, but not its subject %q", capability, pattern, subject)
		}
		if covered && !grants.Covers(capability, subject) {
			t.Fatalf("%q does not cover the subject %q of %q", capability, subject, pattern)
		}
	})
}

func TestOverlapHoldsForTheBroker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPattern(t, "a"), drawPattern(t, "b")
		if got, want := grants.Overlap(a, b), server.SubjectsCollide(a, b); got != want {
			t.Fatalf("Overlap(%q, %q) = %v, the broker says %v", a, b, got, want)
		}
	})
	if grants.Overlap(">", "a..b") || grants.Overlap("a.>.b", ">") || grants.Overlap("", "") {
		t.Error("a malformed pattern overlaps another")
	}
}

// Covering is a partial order, which is why a chain may be checked link by link.
func TestCoversIsTransitive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawPattern(t, "a"), drawPattern(t, "b"), drawPattern(t, "c")
		if !grants.Covers(a, a) {
			t.Fatalf("%q does not cover itself", a)
		}
		if grants.Covers(a, b) && grants.Covers(b, c) && !grants.Covers(a, c) {
			t.Fatalf("%q covers %q covers %q, but not the last", a, b, c)
		}
	})
}

func FuzzCovers(f *testing.F) {
	f.Add(">", "a.b")
	f.Add("a.*", "a.>")
	f.Add("a.>.b", "a.x.b")
	f.Fuzz(func(t *testing.T, capability, pattern string) {
		if !grants.Covers(capability, pattern) {
			return
		}
		if !server.IsValidSubject(capability) || !server.IsValidSubject(pattern) {
			t.Fatalf("%q covers %q, and one is malformed", capability, pattern)
		}
		if !server.SubjectMatchesFilter(pattern, capability) {
			t.Fatalf("%q covers %q, the broker disagrees", capability, pattern)
		}
	})
}

// drawPattern draws from few tokens, so that patterns often meet.
func drawPattern(t *rapid.T, label string) string {
	tokens := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 1, 4).Draw(t, label)
	if rapid.Bool().Draw(t, label+" is open") {
		tokens[len(tokens)-1] = ">"
	}
	return strings.Join(tokens, ".")
}

// drawSubject draws a concrete subject that the pattern matches.
func drawSubject(t *rapid.T, pattern string) string {
	var subject []string
	for token := range strings.SplitSeq(pattern, ".") {
		switch token {
		case "*":
			subject = append(subject, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "one"))
		case ">":
			subject = append(subject, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(t, "tail")...)
		default:
			subject = append(subject, token)
		}
	}
	return strings.Join(subject, ".")
}
