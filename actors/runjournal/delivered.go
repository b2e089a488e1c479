package runjournal

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// ReplayToken stands behind a driver's inbox prefix where its run's journal is delivered.
const ReplayToken = "replay"

// laterWithin is how long it is waited for what must have been appended.
const laterWithin = 2 * time.Second

// Delivered is a Source for a driver whose journal the authority has delivered to its
// inbox, once and in order: the driver itself may ask the stream for nothing. What was
// dropped on the way is missing for this driver, and its replay fails; the next attempt
// has another delivery.
type Delivered struct {
	sub   *nats.Subscription
	head  uint64
	last  uint64
	again bool
}

// Deliver listens for the journal at inbox, the prefix of the driver's own inbox: `_INBOX_`
// and the driver's public key, which is to be the connection's inbox prefix too. head is
// the sequence of the last record as the authority knew it, 0 for none: RunAttempt.Head.
func Deliver(nc *nats.Conn, inbox string, head uint64) (*Delivered, error) {
	sub, err := nc.SubscribeSync(inbox + "." + ReplayToken)
	if err != nil {
		return nil, messages.BrokerAway.From(err)
	}
	if err := sub.SetPendingLimits(maxRecords, -1); err != nil {
		return nil, messages.BrokerAway.From(err)
	}
	return &Delivered{sub: sub, head: head}, nil
}

// Read is Source. Each call goes on where the one before ended: it waits for what must be
// there, and takes what else has come. It is used by one goroutine.
func (d *Delivered) Read(ctx context.Context, _ uint64) ([]Stored, error) {
	again, within := d.again, answerWithin
	if d.again = true; again { // the activation was lost to something
		within = laterWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var all []Stored
	must := again || d.last < d.head
	for must {
		m, err := d.sub.NextMsgWithContext(ctx)
		if err != nil {
			if again {
				return all, nil // who asks finds out by the next append
			}
			return nil, messages.BrokerAway.From(err)
		}
		at, err := m.Metadata()
		if err != nil {
			return nil, messages.JournalDamaged.Because("something else was delivered")
		}
		all, d.last = append(all, Stored{at.Sequence.Stream, m.Data}), at.Sequence.Stream
		must = at.NumPending > 0 || d.last < d.head
	}
	return all, nil
}

// Close ends listening.
func (d *Delivered) Close() error { return d.sub.Unsubscribe() }
