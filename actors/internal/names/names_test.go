package names_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const owner = "u_7ddcihobiesn4x46pu2mxn2qee"

func TestGrammars(t *testing.T) {
	cases := []struct {
		what  string
		check func(string) error
		good  []string
		bad   []string
	}{
		{"space", names.CheckSpace,
			[]string{"main", "a", "a-b_c", "0", strings.Repeat("a", 32)},
			[]string{"", ".", "..", "a/b", "Main", "a.b", "-a", "_a", "a b", "a>", "é", strings.Repeat("a", 33), "a\x00"}},
		{"owner", names.CheckOwner,
			[]string{owner, "p" + owner[1:], "u_" + strings.Repeat("b", 26)},
			[]string{"", "local", "u_", owner + "a", owner[:27], strings.ToUpper(owner), "x" + owner[1:], owner[:20] + "1" + owner[21:]}},
		{"actor", names.CheckActor,
			[]string{"laptop", "A_9", strings.Repeat("x", 64)},
			[]string{"", "a.b", "a-b", "*", ">", "a b", strings.Repeat("x", 65), strings.Repeat("x", 10_000), "é"}},
		{"uid", names.CheckUID,
			[]string{strings.Repeat("a", 26), strings.Repeat("0", 32)},
			[]string{"", strings.Repeat("a", 25), strings.Repeat("a", 33), strings.Repeat("A", 26), strings.Repeat("a", 25) + "."}},
	}
	for _, c := range cases {
		for _, s := range c.good {
			if err := c.check(s); err != nil {
				t.Errorf("%s %q is refused: %v", c.what, s, err)
			}
		}
		for _, s := range c.bad {
			if err := c.check(s); !errors.Is(err, messages.Malformed) {
				t.Errorf("%s %q: got %v, want %v", c.what, s, err, messages.Malformed)
			}
		}
	}
}

func TestParsePrincipal(t *testing.T) {
	p, err := names.ParsePrincipal(owner + ".laptop")
	if err != nil || p.String() != owner+".laptop" || p.Name() != owner+"-laptop" || p.InboxPrefix() != "_INBOX_"+owner+"-laptop" {
		t.Fatalf("got %v, %v", p, err)
	}
	for _, bad := range []string{"", ".", owner, owner + ".", "." + owner, owner + ".a.b", "local.x", owner + "-laptop"} {
		if p, err := names.ParsePrincipal(bad); err == nil || !p.IsZero() {
			t.Errorf("%q became %v", bad, p)
		}
	}
}

func FuzzParsePrincipal(f *testing.F) {
	f.Add(owner + ".laptop")
	f.Add("a.b")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := names.ParsePrincipal(s)
		if err == nil && p.String() != s {
			t.Fatalf("%q became %q", s, p)
		}
	})
}

func TestNewUID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		uid := names.NewUID()
		if err := names.CheckUID(uid); err != nil || seen[uid] {
			t.Fatalf("%q: %v, seen %v", uid, err, seen[uid])
		}
		seen[uid] = true
	}
}
