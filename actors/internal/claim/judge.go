package claim

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// askWithin bounds one question to the oracle.
const askWithin = 5 * time.Second

// Oracle tells whether a connection is gone.
type Oracle interface {
	// Liveness judges one connection of CTRL. It is messages.Gone only on proof: the
	// server of that id answered whole and does not list the user; or no server of that
	// id answered, and the server of that name answered under another id. Everything
	// else, failures of its own included, is messages.Unknown; note tells an operator
	// why. It is called for both connections of a holder at once, and ends with ctx.
	Liveness(ctx context.Context, connection messages.ConnectionTuple) (verdict messages.Verdict, note string)
}

// opinion is what is known of one connection.
type opinion struct {
	verdict messages.Verdict
	note    string
}

// judge returns nil when the former holder is gone. One live connection is enough
// to refuse; one unknown is enough not to know.
func (a *acquisition) judge(ctx context.Context, former messages.Claim) error {
	opinions := a.ask(ctx, former.Ledger, former.Records)
	var notes []string
	worst := messages.Gone
	for _, o := range opinions {
		if o.verdict != messages.Gone && o.note != "" && !slices.Contains(notes, o.note) {
			notes = append(notes, o.note)
		}
		if o.verdict == messages.Live || (o.verdict == messages.Unknown && worst == messages.Gone) {
			worst = o.verdict
		}
	}
	switch worst {
	case messages.Gone:
		return nil
	case messages.Live:
		return standing{messages.ClaimLivePeer, former, notes}
	default:
		return standing{messages.ClaimUnknown, former, notes}
	}
}

// ask puts the question about both connections at once.
func (a *acquisition) ask(ctx context.Context, connections ...messages.ConnectionTuple) []opinion {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	opinions := make([]opinion, len(connections))
	var asking sync.WaitGroup
	for i, connection := range connections {
		asking.Go(func() { opinions[i] = a.opinionOf(ctx, connection) })
	}
	asking.Wait()
	return opinions
}

// opinionOf asks about one connection. A server that the operator gave up settles
// only what nobody knows: one that is seen to live is not gone.
func (a *acquisition) opinionOf(ctx context.Context, connection messages.ConnectionTuple) opinion {
	verdict, note := a.Oracle.Liveness(ctx, connection)
	if verdict != messages.Gone && verdict != messages.Live {
		verdict = messages.Unknown
	}
	if verdict == messages.Unknown && slices.Contains(a.ServersLost, connection.ServerName) {
		return opinion{verdict: messages.Gone}
	}
	return opinion{verdict, note}
}

// standing is a refusal because of a holder.
type standing struct {
	refusal messages.Error
	holder  messages.Claim
	notes   []string
}

// Error names no more than a caller may know; the notes are for the operator.
func (s standing) Error() string { return s.refusal.Error() }

// Unwrap leads to the catalogue.
func (s standing) Unwrap() error { return s.refusal }

func (s standing) text() string { return strings.Join(s.notes, "; ") }
