package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// replayedFor is how long a delivery waits for its driver.
const replayedFor = 5 * time.Minute

// Attempt answers messages.AttemptRun: it reads the journal, reserves, has the journal
// delivered to the driver, and signs. Whatever it dies over, the same question goes on
// from there.
func (r *Runs) Attempt(ctx context.Context, tree *supervisor.Tree, by Asker, ask messages.AttemptRun) (messages.RunAttempted, error) {
	ask.Served = copied(ask.Served)
	return overseen(ctx, r, tree, by, ask.Controller, func() (messages.RunAttempted, error) { return r.attempt(ctx, tree, by, ask) })
}

func (r *Runs) attempt(ctx context.Context, tree *supervisor.Tree, by Asker, ask messages.AttemptRun) (messages.RunAttempted, error) {
	if err := r.offline().CheckAttempt(ask, r.config.Standing); err != nil {
		return messages.RunAttempted{}, err
	}
	journal, err := r.journal(ctx, tree, ask.Run, "")
	if err != nil {
		return messages.RunAttempted{}, err
	}
	role := broker.RunReserver(r.config.Stream.Instance, ask.Controller.Endpoint, ask.Run, ask.Attempt, r.requestOf(ask.Served))
	got, err := records(ctx, r, tree, by, "run-attempt", ask.Run, role, ask, func(ctx context.Context, d *run.Desk) (reservation, error) {
		attempt, admission, err := d.Reserve(ctx, ask, r.config.Standing, journal)
		return reservation{attempt, admission}, err
	})
	if err != nil {
		return messages.RunAttempted{}, err
	}
	if _, err := r.journal(ctx, tree, ask.Run, ask.Driver); err != nil {
		return messages.RunAttempted{}, err
	}
	return r.sign(got)
}

type reservation struct {
	attempt   messages.RunAttempt
	admission messages.RunAdmission
}

// sign makes the credentials of an attempt: the same ones, to the byte, for the same.
func (r *Runs) sign(got reservation) (messages.RunAttempted, error) {
	user := func(key string) broker.RunUser {
		return broker.RunUser{Run: got.attempt.Run, Key: key, Issued: got.attempt.ReservedAt, Expires: got.attempt.Expires}
	}
	driver, err := broker.MintRunDriver(r.config.Material, user(got.attempt.Driver))
	if err != nil {
		return messages.RunAttempted{}, err
	}
	mediator, err := broker.MintRunMediator(r.config.Material, user(got.attempt.Mediator), got.admission)
	if err != nil {
		return messages.RunAttempted{}, err
	}
	return messages.RunAttempted{
		Attempt:  got.attempt,
		Driver:   messages.RunCredential{Key: got.attempt.Driver, JWT: driver, Expires: got.attempt.Expires},
		Mediator: messages.RunCredential{Key: got.attempt.Mediator, JWT: mediator, Expires: got.attempt.Expires},
	}, nil
}

// Operate answers messages.OperateRun: what is answered is read off the journal.
func (r *Runs) Operate(ctx context.Context, tree *supervisor.Tree, by Asker, ask messages.OperateRun) (messages.RunOperated, error) {
	ask.Served = copied(ask.Served)
	return overseen(ctx, r, tree, by, ask.Controller, func() (messages.RunOperated, error) { return r.operate(ctx, tree, by, ask) })
}

func (r *Runs) operate(ctx context.Context, tree *supervisor.Tree, by Asker, ask messages.OperateRun) (messages.RunOperated, error) {
	if err := r.offline().CheckOperator(ask); err != nil {
		return messages.RunOperated{}, err
	}
	journal, err := r.journal(ctx, tree, ask.Run, "")
	if err != nil {
		return messages.RunOperated{}, err
	}
	role := broker.RunSpender(r.config.Stream.Instance, ask.Controller.Endpoint, ask.Run, r.requestOf(ask.Served))
	token, err := records(ctx, r, tree, by, "run-operator", ask.Run, role, ask, func(ctx context.Context, d *run.Desk) (string, error) {
		return d.Operate(ctx, ask, journal)
	})
	if err != nil {
		return messages.RunOperated{}, err
	}
	answer := messages.RunOperated{}
	if token != "" {
		answer.Subject = broker.AnswerSubject(r.config.Stream.Space, ask.Run, token, ask.Amend)
	} else if _, err := r.journal(ctx, tree, ask.Run, ask.Key); err != nil {
		return messages.RunOperated{}, err
	}
	now := r.config.Now().Truncate(time.Second)
	user := broker.RunUser{Run: ask.Run, Key: ask.Key, Issued: now, Expires: now.Add(run.ShortestLife)}
	answer.Credential = messages.RunCredential{Key: ask.Key, Expires: user.Expires}
	answer.Credential.JWT, err = broker.MintRunOperator(r.config.Material, user, answer.Subject)
	return answer, err
}

func (r *Runs) requestOf(served messages.RunRequest) string {
	if served.Subject == "" {
		return ""
	}
	return run.RequestID(r.config.Stream.Space, served)
}

// readJournal asks for the journal of a run.
type readJournal struct{ run string }

// journal replays the journal of a run over a connection of its own, and has it delivered
// to the user with this key, if one is given. A run without one has an empty history.
func (r *Runs) journal(ctx context.Context, tree *supervisor.Tree, name, key string) (*runjournal.History, error) {
	role := broker.RunAttemptReader()
	if key != "" {
		role = broker.RunReplayer(name, key)
	}
	ask := readJournal{name}
	return operations.Perform[*runjournal.History](ctx, r.config.Calls, tree, operations.Job{
		Kind: "run-journal", On: name, Role: role, Ask: ask,
		Do: func(ctx context.Context, at operations.Site) (any, error) {
			js, err := jetstream.New(at.Conn.NATS())
			if err != nil {
				return nil, messages.InternalFault.From(err)
			}
			if err := runjournal.OpenStream(ctx, js, r.config.Stream.Space, r.config.Stream.Replicas); err != nil {
				return nil, err
			}
			if key != "" {
				return &runjournal.History{Run: name}, r.deliver(ctx, js, name, key)
			}
			from, err := runjournal.Over(at.Conn.NATS(), r.config.Stream.Space, name)
			if err != nil {
				return nil, err
			}
			return runjournal.Replay(ctx, from, name, 0)
		},
	})
}

// deliver has a journal delivered to a user's inbox. It is the same delivery whenever it
// is asked for, until the user has heard it and left.
func (r *Runs) deliver(ctx context.Context, js jetstream.JetStream, name, key string) error {
	_, err := js.CreateOrUpdatePushConsumer(ctx, runjournal.StreamName(r.config.Stream.Space), jetstream.ConsumerConfig{
		Name: broker.ReplayConsumer(name, key), FilterSubject: runjournal.Subject(r.config.Stream.Space, name),
		DeliverSubject: broker.ReplaySubject(key), DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckNonePolicy,
		InactiveThreshold: replayedFor,
	})
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Code != 503:
		return messages.InternalFault.From(fmt.Errorf("deliver the journal: %w", err))
	}
	return messages.BrokerAway.From(err)
}
