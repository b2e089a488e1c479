package face

import (
	"context"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// desk is Operations in memory: what is asked for is begun at once, and over when a
// test says so.
type desk struct {
	rows *rows
	// asked gets every retirement and takeover that is asked for; 16 is more than a
	// test has.
	asked chan string

	mu      sync.Mutex
	ops     map[string]*op
	servers []string
	// refuses is what every question is answered with, unless it is nil.
	refuses error
	// absent has nobody hold the plane: nothing is begun.
	absent bool
	// instant has everything done at once.
	instant bool
	retired []messages.AskRetirement
	begun   []messages.BeginTakeover
}

type op struct {
	progress messages.OperationProgress
	over     chan struct{} // closed when it is over (capacity 0)
}

func newDesk(r *rows) *desk {
	return &desk{rows: r, asked: make(chan string, 16), ops: map[string]*op{}, servers: []string{"n1", "n2"}}
}

// retirementOf is an id that follows from the incarnation.
func retirementOf(uid string) string { return "r" + uid[1:] }

func (d *desk) Retire(ctx context.Context, m messages.AskRetirement) (messages.RetirementAsked, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses != nil {
		return messages.RetirementAsked{}, d.refuses
	}
	d.retired = append(d.retired, m)
	found, err := d.rows.reader.Authority(ctx, messages.ReadAuthority{Principal: m.Principal, Head: true})
	if err != nil {
		return messages.RetirementAsked{}, err
	}
	if found.HasGrant && found.Grant.State == messages.GrantLive && (m.UID == "" || m.UID == found.Grant.UID) {
		if _, err := d.rows.writer.RevokeGrant(ctx, messages.RevokeGrant{Principal: m.Principal, By: m.By}); err != nil {
			return messages.RetirementAsked{}, err
		}
	}
	answer := messages.RetirementAsked{Principal: m.Principal, UID: m.UID}
	if answer.UID == "" {
		answer.UID = found.Grant.UID
	}
	if _, stands := d.rows.stands(m.Principal); !found.HasHead && !stands {
		return answer, nil
	}
	answer.Operation = retirementOf(answer.UID)
	d.begin(messages.Operation{ID: answer.Operation, Kind: messages.Retirement, Principal: m.Principal, UID: answer.UID, By: m.By})
	return answer, nil
}

// begin needs the lock.
func (d *desk) begin(o messages.Operation) {
	if d.ops[o.ID] == nil && !d.absent {
		o.Step, o.Began = messages.StepBegun, time.UnixMilli(1000)
		d.ops[o.ID] = &op{progress: messages.OperationProgress{Operation: o, Doing: "evicting", Done: 1, Total: 3, Attempt: 1}, over: make(chan struct{})}
		if d.instant {
			d.end(o.ID, messages.StepDone)
		}
	}
	d.asked <- o.ID
}

func (d *desk) BeginTakeover(_ context.Context, m messages.BeginTakeover) (messages.OperationProgress, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses != nil {
		return messages.OperationProgress{}, d.refuses
	}
	d.begun = append(d.begun, m)
	d.begin(messages.Operation{ID: m.ID, Kind: messages.Takeover, Principal: m.Principal, UID: m.UID, By: m.By})
	return messages.OperationProgress{}, nil
}

// finish ends an operation at a step.
func (d *desk) finish(id string, at messages.OperationStep) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end(id, at)
}

// end needs the lock.
func (d *desk) end(id string, at messages.OperationStep) {
	o := d.ops[id]
	o.progress = messages.OperationProgress{Operation: o.progress.Operation}
	o.progress.Step, o.progress.Ended = at, time.UnixMilli(1250)
	o.progress.Outcome = messages.Outcome{Revoked: 2, Evicted: 3, Eviction: messages.EvictionSwept, Servers: []string{"n1", "n2"}}
	if o.progress.Kind == messages.Takeover {
		o.progress.Outcome.Epoch = 2
	} else {
		o.progress.Outcome.Frontiers = map[string]uint64{"WORK": 7}
	}
	d.rows.fall(o.progress.Principal)
	if o.progress.Kind == messages.Retirement {
		if err := d.rows.end(o.progress.Principal); err != nil {
			panic(err)
		}
	}
	close(o.over)
}

// waitsFor says why an operation is not over.
func (d *desk) waitsFor(id, what, next string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.ops[id]
	o.progress.Doing, o.progress.WaitingFor, o.progress.Next = "", what, next
}

func (d *desk) find(id string) (*op, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses != nil {
		return nil, d.refuses
	}
	if o := d.ops[id]; o != nil {
		return o, nil
	}
	return nil, messages.OperationNotFound
}

func (d *desk) Operation(_ context.Context, id string) (messages.OperationProgress, error) {
	o, err := d.find(id)
	if err != nil {
		return messages.OperationProgress{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return o.progress, nil
}

func (d *desk) Operations(context.Context) (messages.Operations, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := messages.Operations{}
	for _, o := range d.ops {
		if o.progress.Ended.IsZero() {
			all.Items = append(all.Items, o.progress)
		}
	}
	return all, d.refuses
}

func (d *desk) Await(ctx context.Context, id string, until time.Time) (messages.OperationProgress, error) {
	o, err := d.find(id)
	if err != nil {
		return messages.OperationProgress{}, err
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-o.over:
	case <-timer.C:
	case <-ctx.Done():
		return messages.OperationProgress{}, messages.ActorAway.From(ctx.Err())
	}
	return d.Operation(ctx, id)
}

func (d *desk) Roster(context.Context) (messages.KnownServers, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return messages.KnownServers{Names: d.servers}, d.refuses
}

func (d *desk) ForgetServer(_ context.Context, m messages.ForgetServer) (messages.KnownServers, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := []string{}
	for _, name := range d.servers {
		if name != m.Name {
			left = append(left, name)
		}
	}
	if len(left) == len(d.servers) {
		return messages.KnownServers{}, messages.ServerUnknown
	}
	d.servers = left
	return messages.KnownServers{Names: left}, nil
}

func (d *desk) set(change func(*desk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}
