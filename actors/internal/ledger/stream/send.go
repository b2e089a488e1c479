package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Headers of a write.
const (
	headerExpected        = "Nats-Expected-Last-Subject-Sequence"
	headerExpectedSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerBatchID         = "Nats-Batch-Id"
	headerBatchSequence   = "Nats-Batch-Sequence"
	headerBatchCommit     = "Nats-Batch-Commit"
)

// Send lands one attempt, as ledger.Backend says: a single row as a plain publish,
// several as one atomic batch under a new id, which may hold the rows of others too.
func (b *Backend) Send(ctx context.Context, batch ledger.Batch) (uint64, error) {
	if err := batch.Check(); err != nil {
		return 0, err
	}
	if b.client.conn.IsClosed() {
		return 0, messages.BrokerAway.From(nats.ErrConnectionClosed)
	}
	if len(batch.Writes) == 1 {
		return b.client.publish(ctx, b.client.message(batch.Writes[0]))
	}
	if ctx.Err() != nil {
		return 0, ledger.ErrNotApplied
	}
	return b.lanes.send(ctx, b.client, batch.Writes)
}

// message is one write on the wire. An expected sequence of 0 is create-only.
func (c client) message(w ledger.Write) *nats.Msg {
	m := nats.NewMsg(c.cfg.Subject(w.Key))
	m.Data = w.Value
	c.pin(m, w.Pin)
	return m
}

func (c client) pin(m *nats.Msg, pin ledger.Pin) {
	m.Header.Set(headerExpected, strconv.FormatUint(pin.Revision, 10))
	if pin.Key != "" {
		m.Header.Set(headerExpectedSubject, c.cfg.Subject(pin.Key))
	}
}

// publishBatch sends all rows without waiting in between. Only the last asks for an
// answer, and it is the answer for all.
func (c client) publishBatch(ctx context.Context, writes []ledger.Write) (uint64, error) {
	id := names.NewUID()
	for i, w := range writes {
		m := c.message(w)
		m.Header.Set(headerBatchID, id)
		m.Header.Set(headerBatchSequence, strconv.Itoa(i+1))
		if i == len(writes)-1 {
			m.Header.Set(headerBatchCommit, "1")
			return c.publish(ctx, m)
		}
		if err := c.conn.PublishMsg(m); err != nil {
			return 0, fmt.Errorf("%w: %w", ledger.ErrNotApplied, err) // the commit was never sent
		}
	}
	panic("unreachable: a batch that passed its check has rows")
}

// ack is the stream's answer to a write.
type ack struct {
	envelope
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
}

// publish sends one message and reads what became of it.
func (c client) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.timeout())
	defer cancel()
	reply, err := c.conn.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded):
		return 0, fmt.Errorf("%w: %w", ledger.ErrNotApplied, err) // it reached nobody, or never left
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ledger.ErrUnknown, err)
	}
	var answer ack
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return 0, fmt.Errorf("%w: %w", ledger.ErrUnknown, err)
	}
	if answer.Refusal != nil {
		return 0, meaning(answer.Refusal)
	}
	if answer.Stream != c.cfg.Name() || answer.Seq == 0 {
		return 0, messages.StreamForeign.Because("another stream took the write")
	}
	return answer.Seq, nil
}

// meaning is what the stream's no says to the ledger.
func meaning(no *apiError) error {
	switch no.Code {
	case codeWrongRevision:
		return fmt.Errorf("%w: %w", ledger.ErrLost, no)
	case codeWrongForNow:
		return fmt.Errorf("%w: %w", ledger.ErrContended, no)
	case codeBatchIncomplete, codeTooManyBatches, codeNotAvailable, codeNotLeader:
		return fmt.Errorf("%w: %w", ledger.ErrNotApplied, no)
	case codeAtomicDisabled:
		return messages.StreamDrifted.From(no)
	}
	if no.Status == statusUnavailable {
		return fmt.Errorf("%w: %w", ledger.ErrNotApplied, no)
	}
	return messages.InternalFault.From(no) // codeBatchTooLarge cannot be: Check bounds it
}
