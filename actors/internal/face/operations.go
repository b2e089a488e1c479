package face

import (
	"context"
	"net/http"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Outcomes as callers read them.
const (
	outcomePending    = "pending"
	outcomeRetired    = "retired"
	outcomeTakenOver  = "taken-over"
	outcomeSuperseded = "superseded"
)

// operationView is an operation as an operator sees it.
type operationView struct {
	// OpID is empty where there was nothing to end.
	OpID    string                 `json:"op_id"`
	Kind    messages.OperationKind `json:"kind"`
	Owner   string                 `json:"owner"`
	Actor   string                 `json:"actor"`
	UID     string                 `json:"uid"`
	Outcome string                 `json:"outcome"`
	Step    messages.OperationStep `json:"step"`
	By      string                 `json:"by"`
	Began   time.Time              `json:"began,omitzero"`
	Ended   time.Time              `json:"ended,omitzero"`
	// TookMS is how long it took, or has taken so far, in milliseconds.
	TookMS int64 `json:"took_ms"`

	// What was proved, as far as it has come.
	Revoked   int               `json:"revoked"`
	Evicted   int               `json:"evicted"`
	Vacuous   bool              `json:"vacuous"`
	Eviction  messages.Eviction `json:"eviction"`
	Servers   []string          `json:"servers"`
	Epoch     uint64            `json:"epoch,omitempty"`
	Frontiers map[string]uint64 `json:"frontiers"`

	// How it goes on, while it is not over.
	Doing      string    `json:"doing,omitempty"`
	Done       int       `json:"done,omitempty"`
	Total      int       `json:"total,omitempty"`
	Attempt    int       `json:"attempt,omitempty"`
	WaitingFor string    `json:"waiting_for,omitempty"`
	Next       string    `json:"next,omitempty"`
	RetryAt    time.Time `json:"retry_at,omitzero"`
}

func (f *Face) operationView(p messages.OperationProgress) operationView {
	v := operationView{
		OpID: p.ID, Kind: p.Kind, Owner: p.Principal.Owner, Actor: p.Principal.Actor, UID: p.UID,
		Outcome: outcomeOf(p.Operation), Step: p.Step, By: p.By, Began: utc(p.Began), Ended: utc(p.Ended), TookMS: f.took(p.Operation),
		Revoked: p.Outcome.Revoked, Evicted: p.Outcome.Evicted, Vacuous: p.Outcome.Vacuous, Eviction: p.Outcome.Eviction,
		Servers: listed(p.Outcome.Servers), Epoch: p.Outcome.Epoch, Frontiers: p.Outcome.Frontiers,
		Doing: p.Doing, Done: p.Done, Total: p.Total, Attempt: p.Attempt,
		WaitingFor: p.WaitingFor, Next: p.Next, RetryAt: utc(p.RetryAt),
	}
	if v.Frontiers == nil {
		v.Frontiers = map[string]uint64{}
	}
	return v
}

func outcomeOf(op messages.Operation) string {
	switch {
	case op.Step == messages.StepSuperseded:
		return outcomeSuperseded
	case op.Step != messages.StepDone:
		return outcomePending
	case op.Kind == messages.Takeover:
		return outcomeTakenOver
	default:
		return outcomeRetired
	}
}

func (f *Face) took(op messages.Operation) int64 {
	switch {
	case op.Began.IsZero():
		return 0
	case op.Ended.IsZero():
		return max(0, f.config.Now().Sub(op.Began).Milliseconds())
	default:
		return op.Ended.Sub(op.Began).Milliseconds()
	}
}

// utc leaves the zero time what it is.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// asked is whom an operation is asked for.
type asked struct {
	principal messages.Principal
	uid, op   string
	wait      time.Duration
}

// readAsked reads whom an operation is about, whole, before anything is done.
// withOp lets the caller name the operation.
func (f *Face) readAsked(c *call, withOp bool) (asked, error) {
	in, err := c.input()
	if err != nil {
		return asked{}, err
	}
	bySubject, byOwner, hasUID, hasOp := in.has("sub"), in.has("owner"), in.has("uid"), withOp && in.has("op_id")
	subject, owner := in.text("sub"), in.text("owner")
	a := asked{principal: messages.Principal{Actor: in.text("actor")}, uid: in.text("uid")}
	if withOp {
		a.op = in.text("op_id")
	}
	if err := in.done(); err != nil {
		return a, err
	}
	if a.principal.Owner, err = f.ownerOf(bySubject, byOwner, subject, owner); err != nil {
		return a, err
	}
	if err := names.CheckPrincipal(a.principal); err != nil {
		return a, err
	}
	c.about = a.principal
	if hasUID {
		if err := names.CheckUID(a.uid); err != nil {
			return a, err
		}
	}
	if hasOp {
		if err := checkOperation(a.op); err != nil {
			return a, err
		}
	}
	a.wait, err = c.wait(defaultWait)
	return a, err
}

// ownerOf is the owner that was named, as such or by the provider's subject.
func (f *Face) ownerOf(bySubject, byOwner bool, subject, owner string) (string, error) {
	switch {
	case bySubject == byOwner:
		return "", messages.Malformed.Because("send sub or owner, exactly one of them")
	case bySubject:
		return f.config.Bridge.OwnerOf(subject)
	}
	return owner, nil
}

// retire answers POST /v1/retire: the incarnation is denied when the answer comes,
// and gone when it says so.
func (f *Face) retire(ctx context.Context, c *call) error {
	who, err := f.readAsked(c, false)
	if err != nil {
		return err
	}
	asked, err := f.config.Operations.Retire(ctx, messages.AskRetirement{Principal: who.principal, UID: who.uid, By: byOperator})
	if err != nil {
		return err
	}
	if asked.Operation == "" {
		c.json(http.StatusOK, f.operationView(neverUsed(asked)))
		return nil
	}
	return c.operation(f.settle(ctx, c, messages.OperationPending, asked.Operation, who.wait))
}

// neverUsed is what comes of retiring an incarnation that nobody ever was.
func neverUsed(asked messages.RetirementAsked) messages.OperationProgress {
	return messages.OperationProgress{Operation: messages.Operation{
		Kind: messages.Retirement, Principal: asked.Principal, UID: asked.UID, Step: messages.StepDone, By: byOperator,
		Outcome: messages.Outcome{Vacuous: true},
	}}
}

// takeover answers POST /v1/takeover.
func (f *Face) takeover(ctx context.Context, c *call) error {
	who, err := f.readAsked(c, true)
	if err != nil {
		return err
	}
	if who.op == "" {
		who.op = names.NewUID()
	}
	_, err = f.config.Operations.BeginTakeover(ctx, messages.BeginTakeover{ID: who.op, Principal: who.principal, UID: who.uid, By: byOperator})
	if err != nil {
		return err
	}
	return c.operation(f.settle(ctx, c, messages.OperationPending, who.op, who.wait))
}

// showOperation answers GET /v1/operations/{id}, for one that is over also.
func (f *Face) showOperation(ctx context.Context, c *call) error {
	if err := checkOperation(c.parts["id"]); err != nil {
		return err
	}
	return c.operation(f.config.Operations.Operation(ctx, c.parts["id"]))
}

// operation answers with one operation, unless it is refused.
func (c *call) operation(p messages.OperationProgress, err error) error {
	if err != nil {
		return err
	}
	c.json(http.StatusOK, c.face.operationView(p))
	return nil
}

// listOperations answers GET /v1/operations: what is owed.
func (f *Face) listOperations(ctx context.Context, c *call) error {
	all, err := f.config.Operations.Operations(ctx)
	if err != nil {
		return err
	}
	views := make([]operationView, len(all.Items))
	for i, p := range all.Items {
		views[i] = f.operationView(p)
	}
	c.json(http.StatusOK, map[string]any{"operations": views})
	return nil
}
