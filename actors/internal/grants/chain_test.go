package grants_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/messages"
)

const owner = "u_7ddcihobiesn4x46pu2mxn2qee"

func principal(actor string) messages.Principal {
	return messages.Principal{Owner: owner, Actor: actor}
}

// link makes a live grant; an empty parent makes a root.
func link(actor, parent string, a messages.Allowance) messages.Grant {
	g := messages.Grant{Principal: principal(actor), Kind: messages.Managed, State: messages.GrantLive, Allowance: a}
	if parent != "" {
		g.Parent = principal(parent)
	}
	return g
}

func publishing(patterns ...string) messages.Allowance { return messages.Allowance{Publish: patterns} }

func TestCheckChainInside(t *testing.T) {
	scoped := func(s ...string) messages.Allowance { return messages.Allowance{Scope: s} }
	cases := []struct {
		what          string
		child, parent messages.Allowance
		excess        string
	}{
		{"nothing under nothing", messages.Allowance{}, messages.Allowance{}, ""},
		{"E070 open under literal", publishing("review.>"), publishing("review.pua"), `"review.>"`},
		{"E070 open under open", publishing("review.>"), publishing("review.>"), ""},
		{"E070 open under everything", publishing("review.>"), publishing(">"), ""},
		{"E071 no union", publishing("a.*"), publishing("a.b", "a.c"), `"a.*"`},
		{"E072 the stem of an open pattern", publishing("a"), publishing("a.>"), `"a"`},
		{"E073 malformed in the parent", publishing("a.x.b"), publishing("a.>.b"), `"a.x.b"`},
		{"E073 malformed on both sides", publishing("a.>.b"), publishing("a.>.b"), `"a.>.b"`},
		{"publish is not subscribe", messages.Allowance{Subscribe: []string{"a"}}, publishing("a"), "subscribe"},
		{"subscribe within", messages.Allowance{Subscribe: []string{"a.b"}}, messages.Allowance{Subscribe: []string{"a.*"}}, ""},
		{"scope within", scoped("a"), scoped("b", "a"), ""},
		{"scope exceeded", scoped("a", "c"), scoped("b", "a"), `scope "c"`},
		{"scope is not a pattern", scoped("a"), scoped(">"), `scope "a"`},
		{"serve under serve", messages.Allowance{Serve: true}, messages.Allowance{Serve: true}, ""},
		{"serve exceeded", messages.Allowance{Serve: true}, messages.Allowance{}, "does not serve"},
		{"the parent's role", messages.Allowance{Role: "ops"}, messages.Allowance{Role: "ops"}, ""},
		{"E078 role without its scope", messages.Allowance{Role: "ops"}, scoped("ops"), `role "ops"`},
		{"E078 role with its scope", messages.Allowance{Role: "ops"}, scoped("role:ops"), ""},
		{"no role is the default role", messages.Allowance{}, messages.Allowance{Role: "narrow"}, `role "default"`},
		{"the default role by name", messages.Allowance{Role: "default"}, messages.Allowance{}, ""},
		{"the default role by scope", messages.Allowance{}, messages.Allowance{Role: "narrow", Scope: []string{"role:default"}}, ""},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			err := grants.CheckChain(link("leaf", "root", c.child), []messages.Grant{link("root", "", c.parent)})
			if c.excess == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, messages.ScopeExceeded) || !strings.Contains(err.Error(), c.excess) {
				t.Fatalf("got %v, want the excess %s", err, c.excess)
			}
		})
	}
}

func TestCheckChainListsEachExcess(t *testing.T) {
	child := messages.Allowance{Scope: []string{"x", "y"}, Publish: []string{"a", "b"}, Subscribe: []string{"c"}, Serve: true, Role: "ops"}
	err := grants.CheckChain(link("leaf", "root", child), []messages.Grant{link("root", "", publishing("a"))})
	for _, part := range []string{`scope "x"`, `scope "y"`, `publish "b"`, `subscribe "c"`, "serve", `role "ops"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}

func TestCheckChainOfSeveralLinks(t *testing.T) {
	leaf := link("leaf", "mid", publishing("a.b"))
	mid := link("mid", "root", publishing("a.*"))
	root := link("root", "", publishing("a.>"))
	revoked := mid
	revoked.State = messages.GrantRevoked
	unset := mid
	unset.State = ""
	foreign := mid
	foreign.Principal.Owner = "u_" + strings.Repeat("b", 26)
	under := leaf
	under.Parent = foreign.Principal

	cases := []struct {
		what  string
		child messages.Grant
		chain []messages.Grant
		want  error
	}{
		{"whole", leaf, []messages.Grant{mid, root}, nil},
		{"a root", root, nil, nil},
		{"E074 grandparent narrowed", leaf, []messages.Grant{mid, link("root", "", publishing("a.c"))}, messages.ScopeExceeded},
		{"E075 parent revoked", leaf, []messages.Grant{revoked, root}, messages.ParentMissing},
		{"parent of no state", leaf, []messages.Grant{unset, root}, messages.ParentMissing},
		{"parent missing", leaf, nil, messages.ParentMissing},
		{"grandparent missing", leaf, []messages.Grant{mid}, messages.ParentMissing},
		{"another in the parent's place", leaf, []messages.Grant{root}, messages.ParentMissing},
		{"E077 across owners", under, []messages.Grant{foreign, root}, messages.ScopeExceeded},
		{"its own parent", link("leaf", "leaf", publishing("a.b")), []messages.Grant{leaf}, messages.ParentMissing},
		{"E076 cycle of two, followed", leaf, []messages.Grant{link("mid", "leaf", publishing("a.b")), leaf}, messages.ParentMissing},
		{"E076 cycle of two, cut short", leaf, []messages.Grant{link("mid", "leaf", publishing("a.b"))}, messages.ParentMissing},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			if err := grants.CheckChain(c.child, c.chain); !errors.Is(err, c.want) || (c.want == nil && err != nil) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestCheckChainDepth(t *testing.T) {
	// line is a leaf and n parents above it; the last one closes onto back, if set.
	line := func(n int, back string) (messages.Grant, []messages.Grant) {
		var chain []messages.Grant
		for i := range n + 1 {
			parent := fmt.Sprintf("p%d", i+1)
			if i == n {
				parent = back
			}
			chain = append(chain, link(fmt.Sprintf("p%d", i), parent, publishing("a")))
		}
		return chain[0], chain[1:]
	}
	for _, c := range []struct {
		parents int
		back    string
		want    error
	}{
		{32, "", nil},
		{33, "", messages.ParentMissing},
		{10_000, "", messages.ParentMissing},
		{20, "p7", messages.ParentMissing},
		{50, "p0", messages.ParentMissing},
	} {
		child, chain := line(c.parents, c.back)
		if err := grants.CheckChain(child, chain); !errors.Is(err, c.want) || (c.want == nil && err != nil) {
			t.Errorf("%d parents, back to %q: got %v, want %v", c.parents, c.back, err, c.want)
		}
	}
}

// Whatever passes at the leaf lies inside every ancestor, however far.
func TestCheckChainReachesEveryAncestor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 4).Draw(t, "depth")
		line := make([]messages.Grant, depth+1)
		for i := range line {
			parent := fmt.Sprintf("p%d", i+1)
			if i == depth {
				parent = ""
			}
			line[i] = link(fmt.Sprintf("p%d", i), parent, drawAllowance(t, fmt.Sprint("p", i)))
		}
		if grants.CheckChain(line[0], line[1:]) != nil {
			return
		}
		for _, ancestor := range line[1:] {
			direct := line[0]
			direct.Parent = ancestor.Principal
			ancestor.Parent = messages.Principal{}
			if err := grants.CheckChain(direct, []messages.Grant{ancestor}); err != nil {
				t.Fatalf("the chain holds, but the leaf exceeds %s: %v", ancestor.Principal, err)
			}
		}
	})
}

func drawAllowance(t *rapid.T, label string) messages.Allowance {
	scope := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "role:r", "role:default"}), 0, 3, rapid.ID[string]).Draw(t, label+" scope")
	patterns := rapid.SliceOfN(rapid.SampledFrom([]string{"a.b", "a.*", "a.>", "b"}), 0, 3).Draw(t, label+" publish")
	return messages.Allowance{Scope: scope, Publish: patterns, Subscribe: slices.Clone(patterns),
		Serve: rapid.Bool().Draw(t, label+" serve"), Role: rapid.SampledFrom([]string{"", "r"}).Draw(t, label+" role")}
}

func BenchmarkCheckChainWorst(b *testing.B) {
	var wide, narrow messages.Allowance
	for i := range grants.MaxPatterns {
		wide.Publish = append(wide.Publish, fmt.Sprintf("a.%d.*", i))
		narrow.Publish = append(narrow.Publish, fmt.Sprintf("a.%d.x", grants.MaxPatterns-1-i))
	}
	chain := []messages.Grant{link("root", "", wide)}
	for b.Loop() {
		if err := grants.CheckChain(link("leaf", "root", narrow), chain); err != nil {
			b.Fatal(err)
		}
	}
}
