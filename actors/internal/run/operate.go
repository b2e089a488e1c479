package run

import (
	"context"
	"fmt"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// CheckOperator refuses what can be seen to be wrong with an operator offline.
func (d *Desk) CheckOperator(ask messages.OperateRun) error {
	if err := check(ask.Controller, ask.Run); err != nil {
		return err
	}
	if !nkeys.IsValidPublicUserKey(ask.Key) {
		return messages.Malformed.Because("the key is no public user key")
	}
	_, err := d.servedAnswer(ask)
	return err
}

// servedAnswer is the request to answer; nil for whoever only reads.
func (d *Desk) servedAnswer(ask messages.OperateRun) (*asked, error) {
	switch {
	case ask.Step == "" && (ask.Amend || ask.Served.Subject != ""):
		return nil, messages.Malformed.Because("whoever reads answers no step")
	case ask.Step == "":
		return nil, nil
	case !isToken(ask.Step, 1):
		return nil, messages.Malformed.Because("a step is 1 to 64 characters of [A-Za-z0-9_-]")
	case ask.Served.Subject == "":
		return nil, messages.RunUnwitnessed.Because("an answer comes with the request of whoever gives it")
	}
	a, err := d.read(runrequest.Answer, ask.Controller, ask.Served)
	if err == nil && (a.body.Run != ask.Run || a.body.Step != ask.Step || a.body.Amend != ask.Amend) {
		err = messages.RunExceeded.Because("the request answers something else")
	}
	return a, err
}

// Operate decides about an operator, as messages.OperateRun says, and answers the token
// of the pause that he answers; empty for reading. journal is the run's own: a controller
// names no token.
func (d *Desk) Operate(ctx context.Context, ask messages.OperateRun, journal *runjournal.History) (token string, err error) {
	if err = d.CheckOperator(ask); err == nil {
		err = d.Receipts.Check(ctx, ask.Controller)
	}
	if err == nil {
		token, err = again(ctx, d, func() (string, error) { return d.operate(ctx, ask, journal) })
	}
	if err == nil {
		err = d.Receipts.Check(ctx, ask.Controller)
	}
	if err != nil {
		return "", fmt.Errorf("operate %s: %w", ask.Run, err)
	}
	return token, nil
}

func (d *Desk) operate(ctx context.Context, ask messages.OperateRun, journal *runjournal.History) (string, error) {
	admission, err := d.Usable(ctx, ask.Controller, ask.Run)
	if err != nil || ask.Step == "" {
		return "", err
	}
	a, err := d.servedAnswer(ask)
	if err != nil {
		return "", err
	}
	token, err := journal.State.Pause(ask.Step, ask.Amend)
	if err != nil {
		return "", err
	}
	asks := use{ask.Controller.Endpoint, a.id, ask.Run, "answer." + token}
	if ask.Amend {
		asks.For = "amend." + token
	}
	writes, err := d.spend(ctx, a, admission, asks)
	if err == nil && len(writes) > 0 {
		_, err = d.Records.Apply(ctx, ledger.Batch{Writes: writes})
	}
	return token, err
}
