package admin

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/actors/internal/rail"
	"github.com/cotal-ai/authplane/messages"
)

// refused is the body of every answer that is not yes.
type refused struct {
	Error struct {
		Code      messages.Code `json:"code"`
		Reason    string        `json:"reason"`
		Message   string        `json:"message"`
		Retryable bool          `json:"retryable"`
		// Changed is false, and there, where it is certain that nothing was.
		Changed *bool `json:"changed,omitempty"`
		// OpID and Step are of the operation that goes on, if one does.
		OpID string                 `json:"op_id,omitempty"`
		Step messages.OperationStep `json:"step,omitempty"`
	} `json:"error"`
}

// unchanged is how a refusal says that nothing came of it.
const unchanged = "nothing was changed"

// refusal is how a NATS service says no: the status of the code and the text in the
// headers, and the whole in the body.
func refusal(err error) (nats.Header, []byte) {
	entry := messages.Describe(err)
	var body refused
	body.Error.Code, body.Error.Reason, body.Error.Retryable = entry.Code, entry.Reason, entry.Retryable
	body.Error.Message = messages.PublicText(err)
	if u := (*rail.Undone)(nil); errors.As(err, &u) {
		body.Error.Changed = new(bool)
		if !strings.Contains(body.Error.Message, unchanged) {
			body.Error.Message += "; " + unchanged
		}
	}
	if p := (*rail.Pending)(nil); errors.As(err, &p) {
		body.Error.OpID, body.Error.Step = p.OpID, p.Step
	}
	return nats.Header{
		micro.ErrorHeader:     {body.Error.Message},
		micro.ErrorCodeHeader: {strconv.Itoa(entry.Code.HTTPStatus())},
	}, encode(body)
}

// encode writes a value of ours, which always can be.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// answerable reports whether an answer may go to a subject: the server makes one for
// every question that comes from another account, and only those are answered.
func answerable(reply string) bool { return strings.HasPrefix(reply, "_R_.") }
