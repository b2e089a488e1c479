package footprint

import (
	"context"
	"errors"

	"github.com/cotal-ai/authplane/messages"
)

// ErrMoved says that the journal is not, or may not be, as it was read any more. Nothing
// is lost by it: whoever meets it reads again.
var ErrMoved = errors.New("the journal has moved")

// ErrOther says that something else stands under the name of a part.
var ErrOther = errors.New("something else stands there")

// Entry is a journal as it was read.
type Entry struct {
	messages.Provision
	// Revision is what a write is pinned to; 0 for an entry that is not there yet.
	Revision uint64
}

// Journal is the ledger. Its reads are the leader's; its errors carry entries of the
// catalogue, and what is retryable in them may or may not have been done.
type Journal interface {
	// Keys lists the entries that match a filter of the ledger.
	Keys(ctx context.Context, filter string) ([]string, error)
	// Read reads one entry; false is true absence.
	Read(ctx context.Context, key string) (Entry, bool, error)
	// Write puts an entry over the revision it was read at. ErrMoved.
	Write(ctx context.Context, e Entry) (Entry, error)
	// Grant is Write together with the grant of the ask, for the entry's incarnation.
	// ErrMoved, and refusals as a grant has.
	Grant(ctx context.Context, e Entry, ask messages.EnrolMachine) (Entry, error)
	// Standing reads a principal's grant, head and chain.
	Standing(ctx context.Context, p messages.Principal) (messages.Authority, error)
	// End revokes the grant of one incarnation, if it is not, and has what lives under it
	// retired. It succeeds also where there is nothing to end.
	End(ctx context.Context, p messages.Principal, uid string) error
}

// Presence says what stands under the name of a part.
type Presence int

const (
	// Absent is nothing.
	Absent Presence = iota
	// Ours has the mark of this incarnation.
	Ours
	// Alike is another's, and as it has to be.
	Alike
	// Other is another's, or not as it has to be.
	Other
)

// Site is the account of the principals over one connection, for one entry. It marks
// what it makes with the incarnation. Errors that are definite are
// messages.FootprintRefused; after any other the part may be there or not.
type Site interface {
	Consumer(context.Context, messages.FootprintConsumer) (Presence, error)
	Row(context.Context, messages.FootprintRow) (Presence, error)
	// MakeConsumer and MakeRow make a part that is not there; they succeed over one of
	// ours, and fail with ErrOther over another's.
	MakeConsumer(context.Context, messages.FootprintConsumer) error
	MakeRow(context.Context, messages.FootprintRow) error
	// RemoveConsumer and RemoveRow remove a part, if it is marked or was surely made by
	// us, and succeed where there is none of ours. When they succeed, it is gone.
	RemoveConsumer(ctx context.Context, c messages.FootprintConsumer, made bool) error
	RemoveRow(ctx context.Context, r messages.FootprintRow, made bool) error
}

// Sites opens connections that may do exactly what one entry needs. When a call returns
// with ended, nothing of its connection is left.
type Sites interface {
	Provision(ctx context.Context, p messages.Provision, do func(context.Context, Site) error) (ended bool, err error)
	Deprovision(ctx context.Context, p messages.Provision, do func(context.Context, Site) error) (ended bool, err error)
}
