package supervisor

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// ErrSpec is what every mistake in a Spec is.
var ErrSpec = errors.New("bad spec")

// validate lists every mistake in s at once.
func validate(s Spec, added bool) error {
	v := &validator{name: regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*$`)}
	v.spec(s, s.Name)
	if s.Group != nil && !added {
		for _, k := range s.Group.Children {
			if k.Name == s.Name {
				v.add(s.Name, "a child bears the name of the root")
			}
		}
	}
	return gather("spec "+s.Name, v.errs)
}

type validator struct {
	name *regexp.Regexp
	errs []error
}

func (v *validator) add(path, format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("%w: %s: %s", ErrSpec, path, fmt.Sprintf(format, args...)))
}

func (v *validator) spec(s Spec, path string) {
	if !v.name.MatchString(s.Name) {
		v.add(path, "name %q is not [a-z0-9][a-z0-9_.-]*", s.Name)
	}
	if (s.New == nil) == (s.Group == nil) {
		v.add(path, "exactly one of New and Group is needed")
	}
	if s.Restart > Never {
		v.add(path, "unknown restart policy %d", s.Restart)
	}
	if s.OpenWithin < 0 || s.CloseWithin < 0 || s.Mailbox < 0 {
		v.add(path, "a limit is negative")
	}
	if s.Owes && s.New == nil {
		v.add(path, "only a leaf can owe")
	}
	if s.Group != nil {
		v.group(s.Group, path)
	}
}

func (v *validator) group(g *Group, path string) {
	names := map[string]*Spec{}
	for i := range g.Children {
		k := &g.Children[i]
		if names[k.Name] != nil {
			v.add(path, "two children are named %q", k.Name)
		}
		names[k.Name] = k
		v.spec(*k, path+"/"+k.Name)
		if k.Restart == Fence && g.Fence.empty() {
			v.add(path, "%s fences, but the group has no fence plan", k.Name)
		}
	}
	v.stages(g, path, names)
	for _, name := range g.Fence.Ends {
		if k := names[name]; k == nil || k.Group == nil || !k.Group.Dynamic {
			v.add(path, "the fence ends %q, which is no dynamic group", name)
		}
	}
	for _, name := range g.Fence.Reopens {
		if names[name] == nil {
			v.add(path, "the fence reopens %q, which is no child", name)
		}
	}
}

func (v *validator) stages(g *Group, path string, names map[string]*Spec) {
	if g.Stages == nil {
		return
	}
	var drained, closed []string
	for _, s := range g.Stages {
		for _, name := range s.Needs {
			if names[name] == nil {
				v.add(path, "stage %q needs %q, which is no child", s.Name, name)
			} else if slices.Contains(closed, name) || slices.Contains(s.Close, name) {
				v.add(path, "stage %q needs %q, which is closed by then", s.Name, name)
			}
		}
		for _, name := range s.Drain {
			switch {
			case names[name] == nil:
				v.add(path, "stage %q drains %q, which is no child", s.Name, name)
			case slices.Contains(drained, name):
				v.add(path, "stage %q drains %q again", s.Name, name)
			case slices.Contains(closed, name):
				v.add(path, "stage %q drains %q, which is closed by then", s.Name, name)
			}
			drained = append(drained, name)
		}
		for _, name := range s.Close {
			if names[name] == nil {
				v.add(path, "stage %q closes %q, which is no child", s.Name, name)
			} else if slices.Contains(closed, name) {
				v.add(path, "stage %q closes %q again", s.Name, name)
			}
			closed = append(closed, name)
		}
	}
	for _, k := range g.Children {
		if !slices.Contains(closed, k.Name) {
			v.add(path, "no stage closes %q", k.Name)
		}
	}
}
