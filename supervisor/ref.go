package supervisor

import "github.com/asynkron/protoactor-go/actor"

// A Ref names a place in the tree, not a life: it stays valid over restarts, and
// may be made before the child exists. It is a comparable value and safe to pass
// on. The zero Ref is never available.
type Ref struct {
	tree *Tree
	path string
}

// Path returns the absolute path.
func (r Ref) Path() string { return r.path }

// String returns the path.
func (r Ref) String() string { return r.path }

// PID returns the stable address of the child, for actors outside the kit. They may
// Send, Request, Watch, Stop and Poison it: what is rejected is answered with an
// error value, Terminated comes when the child ends for good and not at a restart,
// and Stop or Poison is a death of the current life. While no such child exists it is
// an address that refuses everything. The zero Ref has none: nil.
func (r Ref) PID() *actor.PID {
	if r.tree == nil {
		return nil
	}
	if a := r.address(); a != nil {
		return a.pid
	}
	return r.tree.nobody
}

func (r Ref) address() *address {
	if r.tree == nil {
		return nil
	}
	return r.tree.address(r.path)
}
