package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// defaultWait is how long a command waits for the operation that it asks for, and
	// longestWait how long it may.
	defaultWait = time.Minute
	longestWait = 10 * time.Minute
)

// operation is a takeover or a retirement as the service shows it.
type operation struct {
	OpID       string                 `json:"op_id"`
	Kind       messages.OperationKind `json:"kind"`
	Owner      string                 `json:"owner"`
	Actor      string                 `json:"actor"`
	UID        string                 `json:"uid"`
	Outcome    string                 `json:"outcome"`
	Step       messages.OperationStep `json:"step"`
	By         string                 `json:"by"`
	Began      time.Time              `json:"began"`
	Ended      time.Time              `json:"ended"`
	TookMS     int64                  `json:"took_ms"`
	Revoked    int                    `json:"revoked"`
	Evicted    int                    `json:"evicted"`
	Vacuous    bool                   `json:"vacuous"`
	Eviction   messages.Eviction      `json:"eviction"`
	Servers    []string               `json:"servers"`
	Epoch      uint64                 `json:"epoch"`
	Frontiers  map[string]uint64      `json:"frontiers"`
	Doing      string                 `json:"doing"`
	Done       int                    `json:"done"`
	Total      int                    `json:"total"`
	Attempt    int                    `json:"attempt"`
	WaitingFor string                 `json:"waiting_for"`
	Next       string                 `json:"next"`
	RetryAt    time.Time              `json:"retry_at"`
}

func (o operation) principal() messages.Principal {
	return messages.Principal{Owner: o.Owner, Actor: o.Actor}
}

// progress says how far it is, in a few words.
func (o operation) progress() string {
	if o.Outcome != "pending" {
		return o.Outcome
	}
	text := o.Doing
	if text == "" {
		text = string(o.Step)
	}
	if o.Total > 0 {
		text += fmt.Sprintf(" %d/%d", o.Done, o.Total)
	}
	if o.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", o.Attempt)
	}
	return text
}

// proof says how it is known that nobody is connected any more.
func (o operation) proof() string {
	if o.OpID == "" && o.Vacuous {
		return "nothing was ever issued to it"
	}
	switch o.Eviction {
	case messages.EvictionSwept:
		return "by two sweeps of " + strings.Join(o.Servers, " ")
	case messages.EvictionExpired:
		return "by time: whatever was issued has run out"
	}
	return ""
}

// cutOff lists where the streams ended when the incarnation did.
func (o operation) cutOff() string {
	var ends []string
	for _, stream := range slices.Sorted(maps.Keys(o.Frontiers)) {
		ends = append(ends, stream+"="+number(o.Frontiers[stream]))
	}
	return strings.Join(ends, " ")
}

// tell shows an operation.
func (a *app) tellOperation(o operation) error {
	var evicted, epoch, took string
	if o.Eviction != "" {
		evicted = strconv.Itoa(o.Evicted)
	}
	if o.Epoch > 0 {
		epoch = number(o.Epoch)
	}
	if !o.Began.IsZero() {
		took = (time.Duration(o.TookMS) * time.Millisecond).String()
	}
	return pairs(a.out,
		[2]string{"principal", slashed(o.principal())},
		[2]string{"uid", o.UID},
		[2]string{"operation", o.OpID},
		[2]string{"kind", string(o.Kind)},
		[2]string{"outcome", o.Outcome},
		[2]string{"progress", pendingOnly(o, o.progress())},
		[2]string{"epoch", epoch},
		[2]string{"revoked", strconv.Itoa(o.Revoked)},
		[2]string{"evicted", evicted},
		[2]string{"proved gone", o.proof()},
		[2]string{"cut off at", o.cutOff()},
		[2]string{"by", o.By},
		[2]string{"began", moment(o.Began)},
		[2]string{"took", took},
		[2]string{"waits for", o.WaitingFor},
		[2]string{"again at", moment(o.RetryAt)},
		[2]string{"next", a.here(o.Next)},
	)
}

func pendingOnly(o operation, text string) string {
	if o.Outcome == "pending" {
		return text
	}
	return ""
}

// targetFlags says whose incarnation an operation is about.
type targetFlags struct {
	sub, owner, actor, uid string
	wait                   time.Duration
}

func (f *targetFlags) define(set *pflag.FlagSet) {
	set.StringVar(&f.sub, "sub", "", "the `subject` as the identity provider names it")
	set.StringVar(&f.owner, "owner", "", "the `owner`, instead of --sub")
	set.StringVar(&f.actor, "actor", "", "the `actor`, one of the owner's")
	set.StringVar(&f.uid, "uid", "", "the incarnation that is meant; the current one if left out")
	set.DurationVar(&f.wait, "wait", defaultWait, "how long to wait for the end; 0 only asks for it")
}

// read takes the principal from the one argument, where there is one, and checks
// the whole.
func (f *targetFlags) read(args []string) error {
	if len(args) == 1 {
		p, err := parsePrincipal(args[0])
		if err != nil {
			return err
		}
		if f.sub+f.owner+f.actor != "" {
			return usage("name the principal once: as owner/actor or with --owner, --sub and --actor")
		}
		f.owner, f.actor = p.Owner, p.Actor
	}
	switch {
	case f.actor == "":
		return usage("name the principal: owner/actor, or --sub and --actor")
	case (f.sub == "") == (f.owner == ""):
		return usage("give --sub or --owner, exactly one of them")
	case f.wait < 0 || f.wait > longestWait || f.wait%time.Second != 0:
		return usage("--wait is a number of whole seconds, such as 30s, up to %s", longestWait)
	}
	return nil
}

func (f *targetFlags) body() map[string]any {
	body := map[string]any{"actor": f.actor}
	for name, value := range map[string]string{"sub": f.sub, "owner": f.owner, "uid": f.uid} {
		if value != "" {
			body[name] = value
		}
	}
	return body
}

// operate asks for an operation, waits for its end and shows what was proved. Who
// looks on sees how far it is meanwhile. join puts the operation's id into the body
// of a repeat, where that takes it.
func (a *app) operate(ctx context.Context, path string, f targetFlags, body map[string]any, join func(id string)) error {
	client, err := a.reach()
	if err != nil {
		return err
	}
	defer client.Close()
	ask := func(wait time.Duration) (operation, error) {
		var o operation
		answer, err := client.SendPatiently(ctx, http.MethodPost, fmt.Sprintf("%s?wait=%d", path, wait/time.Second), body, wait)
		if err != nil {
			return o, err
		}
		if a.json {
			return o, passJSON(a.out, answer)
		}
		return o, decode(answer, &o)
	}
	var o operation
	if f.wait > 0 && !a.json && isTerminal(a.err) {
		o, err = a.watched(ctx, client, f.wait, ask, join)
	} else {
		o, err = ask(f.wait)
	}
	if err != nil || a.json {
		return err
	}
	return a.tellOperation(o)
}

// watched asks with a line that shows the progress. The first question only learns
// the operation's id.
func (a *app) watched(ctx context.Context, client *service.Client, wait time.Duration, ask func(time.Duration) (operation, error), join func(string)) (operation, error) {
	o, err := ask(0)
	var pending *service.Refusal
	if !errors.As(err, &pending) || pending.OpID == "" {
		return o, err
	}
	join(pending.OpID)
	meter := startMeter(ctx, a.err, client, pending.OpID)
	defer meter.stop()
	return ask(wait)
}
