package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// How a scan pulls.
const (
	// scanBatch is the most messages that are under way at once.
	scanBatch = 512
	// moreRounds is how many pulls a scan may need above those that fetch what stood
	// there when it began: more, and the rows change faster than they can be read.
	moreRounds = 64
	// milestoneWait is how long one pull waits for a replica that lags, and
	// milestoneRounds how often it is asked.
	milestoneWait   = 250 * time.Millisecond
	milestoneRounds = 12
	// messageWait bounds the wait for one message that the server has.
	messageWait = 5 * time.Second
	// removeWithin bounds the removal of the consumer at the end.
	removeWithin = 2 * time.Second
)

// scan is one enumeration.
type scan struct {
	consumer
	ask ledger.Scan

	inbox *nats.Subscription
	born  time.Time // of the consumer that was verified
	last  uint64    // consumer sequence of the last message, all before it were seen
	rows  map[string]ledger.Row
	// milestone is set once it was delivered.
	milestone bool
}

func newScan(c client, name string, ask ledger.Scan) *scan {
	filters := []string{c.cfg.Subject(ask.Filter)}
	if !ask.Milestone.IsZero() && !ledger.Matches(ask.Filter, ask.Milestone.Key) {
		filters = append(filters, c.cfg.Subject(ask.Milestone.Key))
		slices.Sort(filters)
	}
	return &scan{consumer: consumer{client: c, name: name, filters: filters}, ask: ask,
		rows: map[string]ledger.Row{}, milestone: ask.Milestone.IsZero()}
}

// run makes the consumer, reads it to its end and removes it, whatever happened.
func (s *scan) run(ctx context.Context) (rows []ledger.Row, err error) {
	if err := s.remove(ctx); err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
		defer cancel()
		_ = s.remove(ctx) // if it fails the server forgets it in a while, and the next scan removes it
	}()
	if err := s.make(ctx); err != nil {
		return nil, err
	}
	seen, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.verify(seen); err != nil {
		return nil, err
	}
	s.born = seen.Created
	if s.inbox, err = s.conn.SubscribeSync(s.conn.NewInbox()); err != nil {
		return nil, messages.BrokerAway.From(err)
	}
	defer func() { _ = s.inbox.Unsubscribe() }()
	_ = s.inbox.SetPendingLimits(2*scanBatch, -1) // a batch is what bounds it
	if err := s.readAll(ctx, seen.Pending); err != nil {
		return nil, err
	}
	return s.result(), nil
}

// readAll pulls until nothing is pending, every message was seen and the milestone
// is among them.
func (s *scan) readAll(ctx context.Context, pending uint64) error {
	waits := milestoneRounds
	for rounds := pending/scanBatch + 1 + moreRounds; rounds > 0 && waits > 0; rounds-- {
		if pending == 0 {
			waits--
		}
		if err := s.pull(ctx, pending); err != nil {
			return err
		}
		seen, err := s.look(ctx)
		if err != nil {
			return err
		}
		switch {
		case !seen.Created.Equal(s.born):
			return messages.ScanIncomplete.Because("the consumer was made anew")
		case seen.Delivered.Consumer != s.last:
			return messages.ScanIncomplete.Because("%d messages were sent, %d came", seen.Delivered.Consumer, s.last)
		case seen.Pending == 0 && s.milestone:
			return nil
		}
		pending = seen.Pending
	}
	if !s.milestone {
		return messages.ScanIncomplete.Because("the replica lags: it does not have revision %d", s.ask.Milestone.Revision)
	}
	return messages.ScanIncomplete.Because("the rows change faster than they can be read")
}

// pull asks for a batch of what is pending and reads it. With nothing pending it
// waits a little for what a replica may still get.
func (s *scan) pull(ctx context.Context, pending uint64) error {
	request := struct {
		Batch   uint64        `json:"batch"`
		Expires time.Duration `json:"expires,omitempty"`
		NoWait  bool          `json:"no_wait,omitempty"`
	}{Batch: min(pending, scanBatch), NoWait: true}
	if pending == 0 {
		if s.milestone {
			return nil
		}
		request.Batch, request.NoWait, request.Expires = 1, false, milestoneWait
	}
	body, err := json.Marshal(request)
	if err != nil {
		return messages.InternalFault.From(err)
	}
	next := apiPrefix + "CONSUMER.MSG.NEXT." + s.cfg.Name() + "." + s.name
	if err := s.conn.PublishRequest(next, s.inbox.Subject, body); err != nil {
		return messages.BrokerAway.From(err)
	}
	for range request.Batch {
		more, err := s.take(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// take reads one message, and reports whether more of this pull may come.
func (s *scan) take(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, messageWait)
	defer cancel()
	m, err := s.inbox.NextMsgWithContext(ctx)
	if err != nil {
		return false, messages.ScanIncomplete.From(err)
	}
	if status := m.Header.Get("Status"); status != "" && len(m.Data) == 0 {
		if status == "404" || status == "408" { // nothing more for this pull
			return false, nil
		}
		return false, messages.ScanIncomplete.Because("the server ended the pull: %s", m.Header.Get("Description"))
	}
	return true, s.see(m)
}

// see keeps the row of one message.
func (s *scan) see(m *nats.Msg) error {
	at, err := m.Metadata()
	if err != nil || at.Stream != s.cfg.Name() || at.Consumer != s.name {
		return messages.ScanIncomplete.From(errors.Join(errors.New("a message of something else came"), err))
	}
	if at.Sequence.Consumer != s.last+1 {
		return messages.ScanIncomplete.Because("message %d follows message %d", at.Sequence.Consumer, s.last)
	}
	s.last++
	key, ours := s.cfg.key(m.Subject)
	named := ours && ledger.Matches(s.ask.Filter, key)
	if !named && (!ours || key != s.ask.Milestone.Key) {
		return messages.ScanIncomplete.Because("a row came that was not asked for")
	}
	if key == s.ask.Milestone.Key && at.Sequence.Stream >= s.ask.Milestone.Revision {
		s.milestone = true
	}
	if !named {
		return nil
	}
	if m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != "" {
		return ledger.Corrupt(key, "deleted")
	}
	if before, found := s.rows[key]; !found || before.Revision < at.Sequence.Stream {
		s.rows[key] = ledger.Row{Key: key, Value: bytes.Clone(m.Data), Revision: at.Sequence.Stream}
	}
	return nil
}

// result is every row, sorted by key.
func (s *scan) result() []ledger.Row {
	return slices.SortedFunc(maps.Values(s.rows), func(a, b ledger.Row) int { return strings.Compare(a.Key, b.Key) })
}
