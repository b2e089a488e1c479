package grants

import (
	"slices"

	"github.com/cotal-ai/authplane/messages"
)

// MaxDepth is how many parents a grant may have above it.
const MaxDepth = 32

// DefaultRole is the name of the profile that an empty role stands for.
const DefaultRole = "default"

// CheckChain refuses a grant that does not stay inside the whole chain of its
// parents. The chain holds the parents' grants as they stand now, nearest first;
// it must lead, link by link, to a grant without a parent. A grant without a
// parent is bounded by nothing and always passes.
//
// Each link is checked as the grant was: the parent is live and of the same owner;
// each scope entry is among the parent's; each publish and subscribe pattern is
// covered by one pattern of the parent's same list, since unions are not considered; serving
// needs a parent that serves; and the role is the parent's own, or the parent's
// scope holds `role:<role>`. No role is the role `default` in that, so that a
// parent held to a narrow profile has no child with a wider one by leaving it out.
//
// A chain that is broken, revoked, cyclic or longer than MaxDepth is
// messages.ParentMissing. One that holds, but is exceeded, is
// messages.ScopeExceeded with each excess of the first link that fails.
func CheckChain(child messages.Grant, chain []messages.Grant) error {
	leaf := child.Principal
	for depth := 0; !child.Parent.IsZero(); depth++ {
		if err := checkLink(leaf, child.Parent, chain, depth); err != nil {
			return err
		}
		parent := chain[depth]
		if err := checkInside(child, parent); err != nil {
			return err
		}
		child = parent
	}
	return nil
}

// checkLink refuses a parent, depth links above the leaf's own, that cannot bound
// anybody.
func checkLink(leaf, parent messages.Principal, chain []messages.Grant, depth int) error {
	switch {
	case depth >= MaxDepth:
		return messages.ParentMissing.Because("more than %d links", MaxDepth)
	case parent == leaf || onChain(chain[:depth], parent):
		return messages.ParentMissing.Because("%s is its own ancestor", parent)
	case depth >= len(chain) || chain[depth].Principal != parent:
		return messages.ParentMissing.Because("%s has no grant", parent)
	case chain[depth].State != messages.GrantLive:
		return messages.ParentMissing.Because("the grant of %s is revoked", parent)
	}
	return nil
}

func onChain(chain []messages.Grant, p messages.Principal) bool {
	return slices.ContainsFunc(chain, func(g messages.Grant) bool { return g.Principal == p })
}

// checkInside refuses what the child may do and its parent may not.
func checkInside(child, parent messages.Grant) error {
	var found findings
	if child.Principal.Owner != parent.Principal.Owner {
		found.add("the owner differs from that of %s", parent.Principal)
	}
	for _, entry := range child.Scope {
		if !slices.Contains(parent.Scope, entry) {
			found.add("scope %s is not in that of %s", quoted(entry), parent.Principal)
		}
	}
	found.uncovered("publish", child.Publish, parent.Publish, parent.Principal)
	found.uncovered("subscribe", child.Subscribe, parent.Subscribe, parent.Principal)
	if child.Serve && !parent.Serve {
		found.add("%s does not serve", parent.Principal)
	}
	if role := RoleOf(child.Allowance); role != RoleOf(parent.Allowance) && !slices.Contains(parent.Scope, "role:"+role) {
		found.add("role %s is neither that of %s nor in its scope as %s", quoted(role), parent.Principal, quoted("role:"+role))
	}
	return found.asError(messages.ScopeExceeded)
}

func (f *findings) uncovered(list string, asked, had []string, parent messages.Principal) {
	for _, pattern := range asked {
		if !coveredByOne(had, pattern) {
			f.add("%s %s is not covered by a pattern of %s", list, quoted(pattern), parent)
		}
	}
}

// coveredByOne reports whether a single capability covers the pattern.
func coveredByOne(capabilities []string, pattern string) bool {
	if patternFault(pattern) != "" {
		return false
	}
	if slices.Contains(capabilities, pattern) {
		return true // most children repeat what their parent has
	}
	return slices.ContainsFunc(capabilities, func(capability string) bool {
		return covers(capability, pattern) && patternFault(capability) == ""
	})
}

// RoleOf is the role an allowance names, DefaultRole if it names none.
func RoleOf(a messages.Allowance) string {
	if a.Role == "" {
		return DefaultRole
	}
	return a.Role
}
