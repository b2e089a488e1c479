package supervisor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Defaults of a Spec.
const (
	DefaultOpenWithin  = 10 * time.Second
	DefaultCloseWithin = 5 * time.Second
	DefaultMailbox     = 1024
)

// A Spec describes one child: a leaf (New) or a group of children (Group),
// exactly one of the two. A Spec is read, never changed, and may be used for
// several trees.
type Spec struct {
	// Name is one segment of the path: [a-z0-9][a-z0-9_.-]*. The path of a child
	// is parent/name; the children of the root have no prefix, so that a child
	// "writer" of a group "plane" under the root is "plane/writer". The root's own
	// path is its name, which none of its children may bear.
	Name string

	// New makes one life of a leaf. It runs inside the life, before anything else,
	// so that a panic in it is a death like any other. State begins here: nothing
	// of an earlier life is handed over.
	New func(*Life) actor.Actor

	// Group makes this child a group.
	Group *Group

	// Label names the connection a leaf works on, in errors and snapshots. Empty:
	// the label of the resource the life held last.
	Label string

	// OpenWithin limits the time from Open to Opened; the life is ended when it is
	// exceeded. Zero means DefaultOpenWithin for a leaf and no limit for a group,
	// whose children have limits of their own.
	OpenWithin time.Duration

	// CloseWithin limits one orderly close, and one drain, of a leaf. Zero means
	// DefaultCloseWithin. For a group zero means no limit beyond those of its children.
	CloseWithin time.Duration

	// Restart says what the death of this child causes.
	Restart Policy

	// Owes says that the leaf answers for something that outlives its lives, such as a
	// lock it took: when the tree closes, or it is removed, and it has no life, it gets
	// one to close in. That life gets no Open; it may refuse and be asked again like
	// any other. A leaf that never began owes nothing.
	Owes bool

	// Mailbox is the number of messages from others that may wait; one more is
	// answered ErrOverloaded. Zero means DefaultMailbox. What a life tells itself
	// is not counted.
	Mailbox int
}

// A Group is an ordered set of children that open, fence and close together.
type Group struct {
	// Children in the order in which they open.
	Children []Spec

	// Stages is the cascade of an orderly close. Nil means the exact reverse of the
	// open order, one by one. Otherwise every child of Children stands in the Close
	// of exactly one stage, and in a Drain at most once and not after its Close.
	// Children added later are no part of the stages: they close concurrently
	// before the first one.
	Stages []Stage

	// Fence is the group's fence plan. Empty: the group has none, and a fence asked
	// for inside it goes to the nearest group above that has one.
	Fence FencePlan

	// Dynamic allows children to be added and removed while the group is open.
	Dynamic bool
}

// A Stage is one step of a close cascade. Its members drain and close
// concurrently; the stage ends when all have answered or its time is over.
type Stage struct {
	// Name is used in errors.
	Name string

	// Drain names the children that get a Drain. A child named in both Drain and
	// Close of one stage drains first and then closes.
	Drain []string

	// Close names the children that get a Close.
	Close []string

	// Needs names children of later stages that the members ask while they close. One
	// that is down is opened again for as long as the stage takes. That it cannot be is
	// for the members to say, if they needed it.
	Needs []string

	// Halts stops the cascade when something of this stage neither closed nor
	// drained. What comes after stays open, and Close may be called again.
	Halts bool

	// Share is the stage's weight when what is left of the total deadline is
	// divided over the stages that are left. Zero means 1.
	Share int
}

// A FencePlan says what a fence ends and reopens; everything else stays.
type FencePlan struct {
	// Ends names dynamic groups of this group, whose children are ended. They are
	// not reopened; until the fence has healed none can be added.
	Ends []string

	// Reopens names children that are closed in the reverse of the open order and
	// opened again in the open order.
	Reopens []string
}

func (p FencePlan) empty() bool { return len(p.Ends) == 0 && len(p.Reopens) == 0 }

// A Policy says what the death of a child causes.
type Policy uint8

const (
	// Alone restarts the child; its siblings do not notice. The default.
	Alone Policy = iota
	// Rest closes everything opened after the child, in reverse, and opens the
	// child and the rest again in order.
	Rest
	// Fence runs the group's fence plan.
	Fence
	// Escalate makes the group fail.
	Escalate
	// Never leaves it at an event: a temporary child. One that was added is removed
	// with its end.
	Never
)

func (p Policy) String() string {
	switch p {
	case Alone:
		return "alone"
	case Rest:
		return "rest"
	case Fence:
		return "fence"
	case Escalate:
		return "escalate"
	case Never:
		return "never"
	}
	return "unknown"
}

// Open is the first message of a life (as *Open). The leaf answers through
// Life.Opened or Life.Fail, at once or later.
type Open struct{}

// Drain (as *Drain) asks a leaf to accept nothing new and to finish what it has
// accepted. It answers through Life.Drained and goes on living. One that did not
// answer in time is asked again when the close is retried.
type Drain struct {
	Deadline time.Time // when the answer is no longer waited for
}

// Close (as *Close) asks a leaf to end in order. It answers through
// Life.ClosedWith. A leaf that refused, or did not answer in time, is asked again
// when the close is retried, so it may get several while it works on the first.
type Close struct {
	Why      Why
	Cause    error     // what led to it: the reason of a fence, the failure of an open; may be nil
	Deadline time.Time // when the answer is no longer waited for
}

// Why says why a leaf is asked to close.
type Why uint8

const (
	Shutdown   Why = iota // the tree closes
	Unwinding             // something else failed to open, or the group failed
	Regrouping            // an earlier sibling with policy Rest died
	Fencing               // the group's fence
	Removing              // Remove was called
)

func (w Why) String() string {
	switch w {
	case Shutdown:
		return "shutdown"
	case Unwinding:
		return "unwinding"
	case Regrouping:
		return "regrouping"
	case Fencing:
		return "fencing"
	case Removing:
		return "removing"
	}
	return "unknown"
}

func (s Spec) openWithin() time.Duration {
	if s.OpenWithin == 0 && s.Group == nil {
		return DefaultOpenWithin
	}
	return s.OpenWithin
}

func (s Spec) closeWithin() time.Duration {
	if s.CloseWithin == 0 && s.Group == nil {
		return DefaultCloseWithin
	}
	return s.CloseWithin
}

func (s Spec) mailbox() int {
	if s.Mailbox <= 0 {
		return DefaultMailbox
	}
	return s.Mailbox
}
