package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

const apiPrefix = "$JS.API."

// Codes of the server's answers.
const (
	codeNotAvailable    = 10008 // no meta leader, or a group without one
	codeNotLeader       = 10009
	codeNoMessage       = 10037
	codeNameInUse       = 10058
	codeNoStream        = 10059
	codeWrongRevision   = 10071
	codeWrongForNow     = 10164 // another write to the same key is under way
	codeAtomicDisabled  = 10174
	codeBatchIncomplete = 10176
	codeBatchTooLarge   = 10199
	codeTooManyBatches  = 10210

	statusUnavailable = 503
)

// client asks the stream one thing at a time.
type client struct {
	conn *nats.Conn
	cfg  Config
}

// apiError is how the server says no.
type apiError struct {
	Status      int    `json:"code"`
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.Code) }

// envelope is what every answer of the API may be instead: a refusal.
type envelope struct {
	Refusal *apiError `json:"error"`
}

func (e envelope) refusal() *apiError { return e.Refusal }

// ask sends one request of the JetStream API about the stream and reads its
// answer. No answer, or no leader, is messages.BrokerAway; a refusal is an *apiError.
func (c client) ask(ctx context.Context, verb string, body any, answer interface{ refusal() *apiError }) error {
	return c.askAbout(ctx, verb, c.cfg.Name(), body, answer)
}

// askAbout is ask about something else than the stream itself. Without a body
// nothing is sent but the question.
func (c client) askAbout(ctx context.Context, verb, what string, body any, answer interface{ refusal() *apiError }) error {
	var request []byte
	if body != nil {
		var err error
		if request, err = json.Marshal(body); err != nil {
			return messages.InternalFault.From(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.timeout())
	defer cancel()
	reply, err := c.conn.RequestWithContext(ctx, apiPrefix+verb+"."+what, request)
	if err != nil {
		return messages.BrokerAway.From(err)
	}
	if err := json.Unmarshal(reply.Data, answer); err != nil {
		return messages.InternalFault.From(err)
	}
	return refused(answer)
}

// refused is the refusal in an answer, if it is one.
func refused(answer interface{ refusal() *apiError }) error {
	switch no := answer.refusal(); {
	case no == nil:
		return nil
	case no.Code == codeNotAvailable, no.Code == codeNotLeader:
		return messages.BrokerAway.From(no)
	default:
		return no
	}
}

// refusedWith reports whether err is the server's refusal with that code.
func refusedWith(err error, code int) bool {
	var refusal *apiError
	return errors.As(err, &refusal) && refusal.Code == code
}

// stored is a message as the leader holds it.
type stored struct {
	envelope
	Message struct {
		Subject string `json:"subject"`
		Seq     uint64 `json:"seq"`
		Header  []byte `json:"hdrs"`
		Data    []byte `json:"data"`
	} `json:"message"`
}

// get reads the last message of a key from whoever answers as the leader.
func (c client) get(ctx context.Context, key string) (ledger.Row, bool, error) {
	ask := struct {
		Last string `json:"last_by_subj"`
	}{c.cfg.Subject(key)}
	var answer stored
	err := c.ask(ctx, "STREAM.MSG.GET", ask, &answer)
	switch {
	case refusedWith(err, codeNoMessage):
		return ledger.Row{}, false, nil
	case refusedWith(err, codeNoStream):
		return ledger.Row{}, false, messages.StreamForeign.From(err)
	case err != nil:
		return ledger.Row{}, false, fmt.Errorf("read %s: %w", key, err)
	}
	m := answer.Message
	if m.Subject != ask.Last || m.Seq == 0 {
		return ledger.Row{}, false, ledger.Corrupt(key, "another row was answered")
	}
	if err := unmarked(key, m.Header); err != nil {
		return ledger.Row{}, false, err
	}
	return ledger.Row{Key: key, Value: m.Data, Revision: m.Seq}, true, nil
}

// unmarked refuses what a deletion, a purge or an expiry leaves behind: rows are
// never removed, so somebody else did. No header of ours has such words in it.
func unmarked(key string, header []byte) error {
	if bytes.Contains(header, []byte("KV-Operation")) || bytes.Contains(header, []byte("Nats-Marker-Reason")) {
		return ledger.Corrupt(key, "deleted")
	}
	return nil
}

// beat writes this process's beat and waits for its acknowledgement, which only a
// leader with a quorum can give. It says at which revision the beat stands.
func (c client) beat(ctx context.Context, count uint64) (uint64, error) {
	m, err := c.beatOf(count)
	if err != nil {
		return 0, err
	}
	return c.publishBeat(ctx, m)
}

// beatPinned is a beat that is taken only while a row stands at a revision; ledger.ErrLost
// says that it does not.
func (c client) beatPinned(ctx context.Context, count uint64, pin ledger.Pin) (uint64, error) {
	m, err := c.beatOf(count)
	if err != nil {
		return 0, err
	}
	c.pin(m, pin)
	return c.publishBeat(ctx, m)
}

func (c client) beatOf(count uint64) (*nats.Msg, error) {
	value, err := ledger.EncodeBeat(ledger.Beat{Instance: c.cfg.Instance, Count: count, At: time.Now()})
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(c.cfg.Subject(ledger.BeatKey(c.cfg.Instance)))
	m.Data = value
	return m, nil
}

func (c client) publishBeat(ctx context.Context, m *nats.Msg) (uint64, error) {
	at, err := c.publish(ctx, m)
	switch {
	case errors.Is(err, ledger.ErrLost), errors.Is(err, ledger.ErrContended):
		return 0, err
	case err != nil && messages.Describe(err) == messages.InternalFault:
		return 0, messages.BrokerAway.From(err)
	}
	return at, err
}
