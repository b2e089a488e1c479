package grants_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/messages"
)

func TestCheckAllowanceAccepts(t *testing.T) {
	good := []messages.Allowance{
		{},
		{Scope: []string{"run", "role:ops", "a-b_c:d", strings.Repeat("x", 64)}, Publish: []string{"a.>"}, Subscribe: []string{"b.*"}, Serve: true, Role: "ops-1_X"},
		{Scope: []string{"run", "run"}, Publish: []string{"a", "a"}},
		{Scope: slices.Repeat([]string{"s"}, 64), Publish: slices.Repeat([]string{"p"}, 256), Subscribe: slices.Repeat([]string{"p"}, 256)},
	}
	for i, a := range good {
		if err := grants.CheckAllowance(a); err != nil {
			t.Errorf("%d is refused: %v", i, err)
		}
	}
}

func TestCheckAllowanceListsEveryProblem(t *testing.T) {
	bad := messages.Allowance{
		Scope:     []string{"ok", "", "a b", strings.Repeat("x", 65), "é"},
		Publish:   []string{"fine.>", "$JS.API.>", ">", "a.>.b"},
		Subscribe: []string{"_INBOX.x", "a..b"},
		Role:      "no/pe",
	}
	err := grants.CheckAllowance(bad)
	if !errors.Is(err, messages.Malformed) {
		t.Fatalf("got %v, want %v", err, messages.Malformed)
	}
	for _, part := range []string{`scope ""`, `scope "a b"`, `scope "xxx`, `scope "\u00e9"`, `publish pattern "$JS.API.>"`, `publish pattern ">"`,
		`publish pattern "a.>.b"`, `subscribe pattern "_INBOX.x"`, `subscribe pattern "a..b"`, `role "no/pe"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if strings.Contains(err.Error(), `"ok"`) || strings.Contains(err.Error(), "fine") {
		t.Errorf("%q names what is fine", err)
	}
}

func TestCheckAllowanceIsBounded(t *testing.T) {
	big := strings.Repeat("y ", 1<<20)
	for what, a := range map[string]messages.Allowance{
		"too many scope entries": {Scope: slices.Repeat([]string{"s"}, 65)},
		"too many to publish":    {Publish: slices.Repeat([]string{"p"}, 257)},
		"too many to subscribe":  {Subscribe: slices.Repeat([]string{"p"}, 257)},
		"long scope entries":     {Scope: slices.Repeat([]string{big}, 64)},
		"long patterns":          {Publish: slices.Repeat([]string{big}, 256)},
		"long role":              {Role: big},
	} {
		err := grants.CheckAllowance(a)
		if !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: got %v, want %v", what, err, messages.Malformed)
			continue
		}
		if len(err.Error()) > 4096 {
			t.Errorf("%s: the refusal has %d bytes", what, len(err.Error()))
		}
	}
}

func TestCheckScopeWithin(t *testing.T) {
	cases := []struct {
		bearer, grant []string
		excess        string
	}{
		{nil, nil, ""},
		{nil, []string{"a"}, ""},
		{[]string{"a", "b"}, []string{"b", "a", "c"}, ""},
		{[]string{"a", "a"}, []string{"a"}, ""},
		{[]string{"a"}, nil, `"a"`},
		{[]string{"a", "B"}, []string{"a", "b"}, `"B"`},
	}
	for _, c := range cases {
		err := grants.CheckScopeWithin(c.bearer, c.grant)
		if c.excess == "" {
			if err != nil {
				t.Errorf("%v within %v is refused: %v", c.bearer, c.grant, err)
			}
			continue
		}
		if !errors.Is(err, messages.ScopeExceeded) || !strings.Contains(err.Error(), c.excess) {
			t.Errorf("%v within %v: got %v, want the excess %s", c.bearer, c.grant, err, c.excess)
		}
	}
}
