package ledger

import (
	"slices"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// operationFields is the wire form of `op.<opId>`. W is drawn anew for each write.
type operationFields struct {
	V       int           `json:"v"`
	OpID    string        `json:"opId"`
	Kind    string        `json:"kind"`
	Owner   string        `json:"owner"`
	Actor   string        `json:"actor"`
	UID     string        `json:"uid"`
	Step    string        `json:"step"`
	By      string        `json:"by"`
	Began   int64         `json:"began"`           // ms since 1970
	Ended   int64         `json:"ended,omitempty"` // ms since 1970
	Outcome outcomeFields `json:"outcome"`
	W       string        `json:"w"`
}

type outcomeFields struct {
	Revoked   int               `json:"revoked"`
	Evicted   int               `json:"evicted"`
	Vacuous   bool              `json:"vacuous"`
	Eviction  string            `json:"eviction,omitempty"`
	Servers   []string          `json:"servers"`
	Epoch     uint64            `json:"epoch,omitempty"`
	Frontiers map[string]uint64 `json:"frontiers,omitempty"`
}

// EncodeOperation writes an operation. It refuses one that DecodeOperation would not
// take: among others, one that is evicted and does not say how that was proved.
func EncodeOperation(o messages.Operation, witness string) ([]byte, error) {
	out := o.Outcome
	f := operationFields{V: rowVersion, OpID: o.ID, Kind: string(o.Kind), Owner: o.Principal.Owner, Actor: o.Principal.Actor,
		UID: o.UID, Step: string(o.Step), By: o.By, Began: millis(o.Began),
		Outcome: outcomeFields{Revoked: out.Revoked, Evicted: out.Evicted, Vacuous: out.Vacuous, Eviction: string(out.Eviction),
			Servers: listed(out.Servers), Epoch: out.Epoch, Frontiers: out.Frontiers},
		W: witness}
	if !o.Ended.IsZero() {
		f.Ended = millis(o.Ended)
	}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("operation %s: %s", o.ID, why)
	}
	return encode(f)
}

// DecodeOperation reads an operation, or says messages.RowCorrupt.
func DecodeOperation(row Row) (messages.Operation, error) {
	var f operationFields
	if err := decode(row, &f); err != nil {
		return messages.Operation{}, err
	}
	if why := f.fault(); why != "" {
		return messages.Operation{}, corrupt(row.Key, why)
	}
	if OperationKey(f.OpID) != row.Key {
		return messages.Operation{}, corrupt(row.Key, "names another key")
	}
	out := f.Outcome
	o := messages.Operation{ID: f.OpID, Kind: messages.OperationKind(f.Kind), Principal: messages.Principal{Owner: f.Owner, Actor: f.Actor},
		UID: f.UID, Step: messages.OperationStep(f.Step), By: f.By, Began: instant(f.Began),
		Outcome: messages.Outcome{Revoked: out.Revoked, Evicted: out.Evicted, Vacuous: out.Vacuous, Eviction: messages.Eviction(out.Eviction),
			Servers: out.Servers, Epoch: out.Epoch, Frontiers: out.Frontiers}}
	if f.Ended != 0 {
		o.Ended = instant(f.Ended)
	}
	return o, nil
}

func (f operationFields) fault() string {
	step := messages.OperationStep(f.Step)
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case names.CheckUID(f.OpID) != nil:
		return "names no operation"
	case f.Kind != KindTakeover && f.Kind != KindRetirement:
		return "unknown kind"
	case names.CheckPrincipal(messages.Principal{Owner: f.Owner, Actor: f.Actor}) != nil:
		return "names no principal"
	case names.CheckUID(f.UID) != nil:
		return "names no incarnation"
	case step != messages.StepSuperseded && !slices.Contains(stepsOf(messages.OperationKind(f.Kind)), step),
		step == messages.StepSuperseded && f.Kind != KindTakeover:
		return "unknown step"
	case f.By == "" || !isText(f.By):
		return "names nobody who asked"
	case !isInstant(f.Began), f.Ended != 0 && !isInstant(f.Ended):
		return "a number is out of range"
	case over(step) != (f.Ended != 0):
		return "the step and the end do not agree"
	case names.CheckUID(f.W) != nil:
		return "names no witness"
	}
	return f.Outcome.fault(messages.OperationKind(f.Kind), step)
}

// fault checks that the outcome says exactly what an operation at that step knows.
func (f outcomeFields) fault(kind messages.OperationKind, step messages.OperationStep) string {
	eviction := messages.Eviction(f.Eviction)
	proved := step == messages.StepEvicted || step == messages.StepDrained || step == messages.StepDone
	done := step == messages.StepDone
	switch {
	case f.Revoked < 0, f.Revoked > largestNumber, f.Evicted < 0, f.Evicted > largestNumber:
		return "a number is out of range"
	case eviction != "" && eviction != messages.EvictionSwept && eviction != messages.EvictionExpired:
		return "unknown proof"
	case step != messages.StepSuperseded && proved != (eviction != ""):
		return "the step and the proof do not agree"
	case f.Servers == nil || !isSet(f.Servers) || slices.ContainsFunc(f.Servers, func(s string) bool { return !isServer(s) }):
		return "the servers are not sorted, or one has no name"
	case (done && kind == messages.Takeover) != (f.Epoch != 0), f.Epoch > largestNumber:
		return "the step and the epoch do not agree"
	case len(f.Frontiers) > 0 && (!done || kind != messages.Retirement):
		return "the step and the frontiers do not agree"
	case !isFrontier(f.Frontiers):
		return "a frontier is none"
	}
	return ""
}

// stepsOf lists the steps of an operation that nothing supersedes, in their order.
func stepsOf(kind messages.OperationKind) []messages.OperationStep {
	steps := []messages.OperationStep{messages.StepBegun, messages.StepRevoked, messages.StepEvicted}
	if kind == messages.Retirement {
		steps = append(steps, messages.StepDrained)
	}
	return append(steps, messages.StepDone)
}

// over reports whether nothing is left to do at that step.
func over(step messages.OperationStep) bool {
	return step == messages.StepDone || step == messages.StepSuperseded
}
