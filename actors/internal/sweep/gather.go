package sweep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// question is one request, to one server or to all of them.
type question struct {
	subject string
	body    []byte
}

// gather asks all questions at once and hands every answer to take, with the
// number of its question, until take has enough or ctx ends. That ctx ended is no
// error: what take got by then is what there was. Any number of servers may answer
// one question.
func gather(ctx context.Context, nc *nats.Conn, questions []question, take func(number int, answer *nats.Msg) (enough bool)) error {
	in, err := listen(nc)
	if err != nil {
		return away(err)
	}
	defer in.close()
	for number, q := range questions {
		m := &nats.Msg{Subject: q.subject, Reply: in.subject + "." + strconv.Itoa(number), Data: q.body}
		if err := nc.PublishMsg(m); err != nil {
			return away(err)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-in.ended:
			return away(nats.ErrConnectionClosed)
		case answer := <-in.answers:
			number, err := strconv.Atoi(strings.TrimPrefix(answer.Subject, in.subject+"."))
			if err != nil || number < 0 || number >= len(questions) {
				continue // not an answer to anything that was asked
			}
			if take(number, answer) {
				return nil
			}
		}
	}
}

// inbox hears the answers to one set of questions.
type inbox struct {
	subject      string
	subscription *nats.Subscription
	// answers hands over one at a time (capacity 0); the client keeps what waits.
	answers chan *nats.Msg
	// done is closed when nobody takes answers any more, ended when none will come
	// (both capacity 0: they carry no value).
	done, ended chan struct{}
}

func listen(nc *nats.Conn) (*inbox, error) {
	in := &inbox{subject: nc.NewInbox(), answers: make(chan *nats.Msg), done: make(chan struct{}), ended: make(chan struct{})}
	var err error
	in.subscription, err = nc.Subscribe(in.subject+".*", func(m *nats.Msg) {
		select {
		case in.answers <- m:
		case <-in.done:
		}
	})
	if err != nil {
		return nil, err
	}
	end := sync.OnceFunc(func() { close(in.ended) })
	in.subscription.SetClosedHandler(func(string) { end() })
	if !in.subscription.IsValid() { // it may have ended before the handler was there
		end()
	}
	// A page of connections is as large as it is.
	if err := in.subscription.SetPendingLimits(-1, -1); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// close stops listening and returns when nothing of it runs.
func (in *inbox) close() {
	close(in.done)
	_ = in.subscription.Unsubscribe() // it fails only when it has ended already
	<-in.ended
}

// nobodyThere reports whether the answer is the server's word that nobody listens.
func nobodyThere(m *nats.Msg) bool {
	const noResponders = "503"
	return len(m.Data) == 0 && m.Header.Get("Status") == noResponders
}

// Forbidden reports whether the server complained that the connection may not ask
// what it asked. Silence alone does not tell.
func Forbidden(nc *nats.Conn) error {
	if err := nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) {
		return messages.KeysUnusable.Because("the servers do not let this connection ask: %v", err)
	}
	return nil
}

func away(err error) error { return messages.BrokerAway.From(fmt.Errorf("ask the servers: %w", err)) }
