package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// hearFor is how much later than the word that it leads a leader's answer may come: a
// server works on requests in the order in which they came, several at a time.
const hearFor = 100 * time.Millisecond

// getLatest is get where two servers may take themselves for the leader. Only the one
// that is has the beat that was acknowledged at the revision since: once it has shown
// that, it has answered too, and of all answers the latest row counts.
func (c client) getLatest(ctx context.Context, key string, since uint64) (ledger.Row, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.timeout())
	defer cancel()
	answers, err := c.askEverybody(ctx, key)
	if err != nil {
		return ledger.Row{}, false, fmt.Errorf("read %s: %w", key, err)
	}
	defer answers.stop()
	beats, err := c.askEverybody(ctx, ledger.BeatKey(c.cfg.Instance))
	if err != nil {
		return ledger.Row{}, false, fmt.Errorf("read %s: %w", key, err)
	}
	defer beats.stop()
	for {
		beat, found, err := beats.next(ctx)
		if ctx.Err() != nil {
			return ledger.Row{}, false, fmt.Errorf("read %s: %w", key, messages.BrokerAway.Because("nobody shows that it leads"))
		}
		if err == nil && found && beat.Revision >= since {
			break
		}
	}
	return answers.latest(ctx)
}

// answers are what everybody says who takes himself for the leader.
type answers struct {
	client
	key string
	sub *nats.Subscription
}

func (c client) askEverybody(ctx context.Context, key string) (*answers, error) {
	request, err := json.Marshal(lastBySubject{c.cfg.Subject(key)})
	if err != nil {
		return nil, messages.InternalFault.From(err)
	}
	inbox := c.conn.NewInbox()
	sub, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, messages.BrokerAway.From(err)
	}
	a := &answers{client: c, key: key, sub: sub}
	if err := c.conn.PublishRequest(apiPrefix+"STREAM.MSG.GET."+c.cfg.Name(), inbox, request); err != nil {
		a.stop()
		return nil, messages.BrokerAway.From(err)
	}
	return a, nil
}

func (a *answers) stop() { _ = a.sub.Unsubscribe() } // it fails only with the connection

// next is one answer. An error is that answer's, or nobody's when ctx has ended.
func (a *answers) next(ctx context.Context) (ledger.Row, bool, error) {
	m, err := a.sub.NextMsgWithContext(ctx)
	if err != nil {
		return ledger.Row{}, false, messages.BrokerAway.From(err)
	}
	var answer stored
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return ledger.Row{}, false, messages.InternalFault.From(err)
	}
	return a.rowOf(a.key, &answer)
}

// latest is the latest row of all that is answered by now, and in the moment after. That
// nobody has the row is an answer too.
func (a *answers) latest(ctx context.Context) (row ledger.Row, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, hearFor)
	defer cancel()
	answered := false
	for {
		r, there, failed := a.next(ctx)
		switch {
		case ctx.Err() != nil && answered:
			return row, found, nil
		case ctx.Err() != nil:
			return ledger.Row{}, false, fmt.Errorf("read %s: %w", a.key, messages.BrokerAway.Because("whoever leads does not answer"))
		case failed != nil && !messages.Describe(failed).Retryable:
			return ledger.Row{}, false, failed
		case failed == nil:
			answered = true
			if there && r.Revision > row.Revision {
				row, found = r, true
			}
		}
	}
}
