package messages

import "time"

// DecisionKind says how a connect that was not admitted ended.
type DecisionKind string

const (
	// Denied connects got a signed refusal: a fact about the proof or the principal.
	Denied DecisionKind = "denied"
	// Unanswered connects got silence: our own inability, or a request that did not
	// prove to come from a server of ours. Silence leaves a client retrying.
	Unanswered DecisionKind = "unanswered"
)

// Denial is the record of one connect that was not admitted.
type Denial struct {
	// ID names the request; `authplane explain` takes it.
	ID   string       `json:"id"`
	At   time.Time    `json:"at"`
	Kind DecisionKind `json:"kind"`
	Code Code         `json:"code"`
	// Reason is the stable reason of the catalogue.
	Reason string `json:"reason"`
	// Principal is the dotted form as far as the proof told; empty otherwise.
	Principal string `json:"principal"`
	// Remedy tells the operator what to do next.
	Remedy string `json:"remedy"`
}
