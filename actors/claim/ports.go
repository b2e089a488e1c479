package claim

import (
	"context"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/scanner"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// oracle asks the observer whether a former holder is gone.
type oracle struct {
	observer supervisor.Ref
	lost     []string
}

// Liveness is claim.Oracle. An observer that does not answer knows nothing.
func (o oracle) Liveness(ctx context.Context, c messages.ConnectionTuple) (messages.Verdict, string) {
	answer, err := client.Ask[messages.Liveness](ctx, o.observer, messages.AskLiveness{Connection: c, Lost: o.lost})
	if err != nil {
		return messages.Unknown, "the observer did not answer: " + messages.PublicText(err)
	}
	return answer.Verdict, answer.Note
}

// remote scans through the actor of a scanner.
type remote struct {
	scanner supervisor.Ref
	claimID string
}

// Scan is ledger.Scanner.
func (r remote) Scan(ctx context.Context, ask ledger.Scan) ([]ledger.Row, error) {
	answer, err := client.Ask[scanner.Rows](ctx, r.scanner, scanner.Scan{ClaimID: r.claimID, Ask: ask})
	return answer.Rows, err
}
