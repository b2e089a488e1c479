package stream

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// ScanLanes is how many scans of one stream may run at once: so many names its
// scanner may give to a consumer.
const ScanLanes = 4

// LedgerScanName and RecordsScanName, with `-<lane>` behind them, are all the names
// that consumers of ours ever have. Lanes count from 0.
const (
	LedgerScanName  = "cotal-ledger-scan"
	RecordsScanName = "cotal-records-scan"
)

// Scanner enumerates one stream by consumers of literal names, each of which lives
// for one scan. It is the only thing of ours that makes consumers, and is safe for
// concurrent use.
//
// Two scanners of one stream disturb each other's consumers, and notice: the scan
// that was disturbed fails. That only one process scans is for the claim to see to.
type Scanner struct {
	client client
	lanes  chan string // the names that are free: capacity ScanLanes
}

var _ ledger.Scanner = (*Scanner)(nil)

// NewScanner scans the stream of cfg over conn, which stays the caller's.
func NewScanner(conn *nats.Conn, cfg Config) *Scanner {
	s := &Scanner{client: client{conn: conn, cfg: cfg}, lanes: make(chan string, ScanLanes)}
	for lane := range ScanLanes {
		s.lanes <- cfg.scanName() + "-" + strconv.Itoa(lane)
	}
	return s
}

func (c Config) scanName() string {
	if c.records {
		return RecordsScanName
	}
	return LedgerScanName
}

// Scan reads every row that matches, as ledger.Scanner says. A scan that finds all
// lanes busy waits for one.
func (s *Scanner) Scan(ctx context.Context, ask ledger.Scan) ([]ledger.Row, error) {
	select {
	case name := <-s.lanes:
		defer func() { s.lanes <- name }()
		rows, err := newScan(s.client, name, ask).run(ctx)
		if err != nil {
			return nil, fmt.Errorf("scan %s: %w", ask.Filter, err)
		}
		return rows, nil
	case <-ctx.Done():
		return nil, messages.ScanIncomplete.From(ctx.Err())
	}
}
