package ledger

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Root credentials live rootLife and are renewed by an exchange that finds less
// than half of it left.
const rootLife = 90 * 24 * time.Hour

// Options are what a Writer takes from outside.
type Options struct {
	// Instance names the process in what it reserves and asks for; it is one token of a key.
	Instance string
	// Now is the clock; nil is the system's.
	Now func() time.Time
	// NewUID names incarnations, credentials and writes; nil is names.NewUID.
	NewUID func() string
	// NewSecret makes the secrets of machines; nil draws 32 random bytes.
	NewSecret func() messages.Secret
}

// Writer makes the transitions of grants, roots and what descends from them. Each call is one transition,
// durable when it returns without error. It is safe for concurrent use, also by
// several processes: whoever loses a race reads again and decides anew.
//
// Besides the refusals each method names, every one may fail with
// messages.Malformed (nothing was written), Contended, BrokerAway, RowCorrupt and,
// when its context ends with an answer still owed, OutcomeUnknown.
type Writer struct {
	store     *Store
	exchanges queues
	ends      *ride
	Options
}

// NewWriter writes to store.
func NewWriter(store *Store, options Options) *Writer {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.NewUID == nil {
		options.NewUID = names.NewUID
	}
	if options.NewSecret == nil {
		options.NewSecret = newSecret
	}
	return &Writer{store: store, Options: options,
		ends: &ride{store: store, Options: options, turn: make(chan struct{}, 1)}} // one batch at a time
}

// now is the clock in the whole milliseconds that rows hold.
func (w *Writer) now() time.Time { return instant(millis(w.Options.Now())) }

// transition repeats step until it is decided: see Store.decide.
func (w *Writer) transition(ctx context.Context, step func(context.Context) error) error {
	return w.store.decide(ctx, step)
}

// standing is a grant as a transition found it.
type standing struct {
	messages.Grant
	row   Row
	found bool
}

func (w *Writer) grantOf(ctx context.Context, p messages.Principal) (standing, error) {
	return grantAt(ctx, w.store, p)
}

func grantAt(ctx context.Context, source Source, p messages.Principal) (standing, error) {
	row, found, err := source.Get(ctx, GrantKey(p))
	if err != nil || !found {
		return standing{row: Row{Key: GrantKey(p)}}, err
	}
	grant, err := DecodeGrant(row)
	return standing{Grant: grant, row: row, found: true}, err
}

func (s standing) live() bool { return s.found && s.State == messages.GrantLive }

// life is a head as a transition found it.
type life struct {
	messages.Head
	row   Row
	found bool
}

func (w *Writer) headOf(ctx context.Context, p messages.Principal) (life, error) {
	return headAt(ctx, w.store, p)
}

func headAt(ctx context.Context, source Source, p messages.Principal) (life, error) {
	row, found, err := source.Get(ctx, HeadKey(p))
	if err != nil || !found {
		return life{row: Row{Key: HeadKey(p)}}, err
	}
	head, err := DecodeHead(row)
	return life{Head: head, row: row, found: true}, err
}

// over reports whether nothing of a former incarnation stands in the way of a new one.
func (l life) over() bool { return !l.found || l.State == messages.HeadRetired }

// checkText refuses a label or a writer's name that no row could hold.
func checkText(what, text string) error {
	if !isText(text) {
		return messages.Malformed.Because("a %s is at most %d printable bytes", what, maxText)
	}
	return nil
}

// written answers a transition of a grant.
func written(g messages.Grant, secret messages.Secret) messages.GrantWritten {
	return messages.GrantWritten{Principal: g.Principal, UID: g.UID, Revision: g.Revision, ActorToken: secret}
}
