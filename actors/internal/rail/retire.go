package rail

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Retired answers a retirement that is over.
type Retired struct {
	// OpID is empty where nobody ever was the incarnation.
	OpID    string `json:"op_id"`
	UID     string `json:"uid"`
	Outcome string `json:"outcome"` // retired
	// Already says that it had ended before it was asked for.
	Already   bool              `json:"already"`
	Revoked   int               `json:"revoked"`
	Evicted   int               `json:"evicted"`
	Vacuous   bool              `json:"vacuous"`
	Eviction  messages.Eviction `json:"eviction"`
	Servers   []string          `json:"servers"`
	Frontiers map[string]uint64 `json:"frontiers"`
	TookMS    int64             `json:"took_ms"`
}

// Pending is a refusal of whoever did not wait long enough: the operation goes on,
// and a repeat joins it.
type Pending struct {
	refusal error
	// OpID is the operation, and Step how far it is; empty while it is not begun.
	OpID string
	Step messages.OperationStep
}

func (p *Pending) Error() string { return p.refusal.Error() }

// Unwrap gives messages.OperationPending.
func (p *Pending) Unwrap() error { return p.refusal }

// Undone is a refusal of which nothing came: what stood before stands.
type Undone struct{ refusal error }

// Refuse says of a refusal that nothing was changed.
func Refuse(why error) *Undone { return &Undone{why} }

func (u *Undone) Error() string { return u.refusal.Error() }

// Unwrap gives the refusal.
func (u *Undone) Unwrap() error { return u.refusal }

// Retire answers a request for the retirement of the incarnation that its subject
// names. Whoever may publish there may ask; the operation's id, where it is given, is
// checked before anything is read. Whatever is refused before the retirement is asked
// for is Undone.
func (r *Rail) Retire(ctx context.Context, q Question) (Retired, error) {
	behalf, err := r.requester(q)
	if err != nil {
		return Retired{}, Refuse(err)
	}
	ask, err := r.read(q)
	if err != nil {
		return Retired{}, Refuse(err)
	}
	op := r.config.OperationOf(ask.uid)
	if ask.op != "" && ask.op != op {
		return Retired{}, Refuse(messages.OperationUnderived)
	}
	already, err := r.current(ctx, ask)
	if err != nil {
		return Retired{}, Refuse(away(ctx, err))
	}
	if already {
		return r.ended(ctx, ask, op)
	}
	begun, err := r.config.Authority.Retire(ctx, messages.AskRetirement{Principal: ask.target, UID: ask.uid, By: "rail:" + behalf.String()})
	switch {
	case errors.Is(err, messages.IncarnationEnded): // it was another one's turn since it was read
		return Retired{}, Refuse(messages.IncarnationSuperseded.From(err))
	case errors.Is(err, messages.GrantNotFound):
		return Retired{}, Refuse(messages.IncarnationUnknown.From(err))
	case err != nil: // it may be asked for
		return Retired{}, away(ctx, err)
	case begun.Operation == "":
		return neverUsed(ask), nil
	}
	return r.await(ctx, q, ask, begun.Operation)
}

// await waits for a retirement that is asked for to be over.
func (r *Rail) await(ctx context.Context, q Question, ask asked, op string) (Retired, error) {
	if ask.wait > 0 && q.Waits != nil && !q.Waits() {
		ask.wait = 0
	}
	progress, err := r.config.Authority.Await(ctx, op, time.Now().Add(ask.wait))
	switch {
	case err == nil && progress.Step == messages.StepDone:
		return retired(ask, progress.Operation), nil
	case err == nil, errors.Is(err, messages.OperationNotFound), ctx.Err() != nil, messages.Describe(err).Code == messages.Unavailable:
		// It is durable that it will be ended; only how far it is may not be known now.
		refusal := messages.OperationPending.Because("%s is at: %s", op, cmp.Or(string(progress.Step), "not begun"))
		return Retired{}, &Pending{refusal: refusal, OpID: op, Step: progress.Step}
	}
	return Retired{}, err
}

// current reports whether the incarnation has ended already, and refuses one that is
// not the principal's current one.
func (r *Rail) current(ctx context.Context, ask asked) (already bool, err error) {
	found, err := r.config.Authority.Read(ctx, messages.ReadAuthority{Principal: ask.target, Head: true})
	switch {
	case err != nil && messages.Describe(err).Code == messages.Unavailable:
		return false, err
	case err != nil: // what cannot be read says nothing
		return false, messages.Unproved.From(err)
	case found.HasHead && found.Head.UID == ask.uid:
		return found.Head.State == messages.HeadRetired, nil
	case found.HasGrant && found.Grant.UID == ask.uid:
		return false, nil
	case found.HasGrant:
		return false, messages.IncarnationSuperseded.Because("%s is current", found.Grant.UID)
	case found.HasHead:
		return false, messages.IncarnationSuperseded.Because("%s is current", found.Head.UID)
	}
	return false, messages.IncarnationUnknown
}

// ended tells what is recorded of a retirement that is over.
func (r *Rail) ended(ctx context.Context, ask asked, op string) (Retired, error) {
	progress, err := r.config.Authority.Await(ctx, op, time.Now())
	switch {
	case err == nil && progress.Step == messages.StepDone:
		answer := retired(ask, progress.Operation)
		answer.Already = true
		return answer, nil
	case err == nil, errors.Is(err, messages.OperationNotFound):
		answer := retired(ask, messages.Operation{ID: op})
		answer.Already = true
		return answer, nil
	}
	return Retired{}, Refuse(away(ctx, err))
}

// away says where the rail ends in the middle of a question that it is elsewhere, or
// will be back: whoever asks again is answered there.
func away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return messages.PlaneAway.From(err)
	}
	return err
}

func neverUsed(ask asked) Retired {
	return retired(ask, messages.Operation{Outcome: messages.Outcome{Vacuous: true}})
}

func retired(ask asked, op messages.Operation) Retired {
	answer := Retired{
		OpID: op.ID, UID: ask.uid, Outcome: "retired", Revoked: op.Outcome.Revoked, Evicted: op.Outcome.Evicted,
		Vacuous: op.Outcome.Vacuous, Eviction: op.Outcome.Eviction, Servers: op.Outcome.Servers, Frontiers: op.Outcome.Frontiers,
	}
	if answer.Servers == nil {
		answer.Servers = []string{}
	}
	if answer.Frontiers == nil {
		answer.Frontiers = map[string]uint64{}
	}
	if !op.Began.IsZero() && !op.Ended.IsZero() {
		answer.TookMS = op.Ended.Sub(op.Began).Milliseconds()
	}
	return answer
}
