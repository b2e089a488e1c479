package claim

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
)

// Enumerate scans as the holder: the plane is guarded before, so that nobody else's
// scan is disturbed, and after, so that what another holder's scan disturbed is
// thrown away. It fails as Guard and ledger.Scanner do.
func (h *Held) Enumerate(ctx context.Context, scanner ledger.Scanner, ask ledger.Scan) ([]ledger.Row, error) {
	if err := h.Guard(ctx); err != nil {
		return nil, err
	}
	rows, err := scanner.Scan(ctx, ask)
	if err != nil {
		return nil, err
	}
	if err := h.Guard(ctx); err != nil {
		return nil, err
	}
	return rows, nil
}
