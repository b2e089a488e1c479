package runjournal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// Stored is a message of a journal as the stream has it.
type Stored struct {
	Sequence uint64
	Data     []byte
}

// Source is where a journal is read. What it answers may be late: then the activation
// that rests on it fails, and it is asked again.
type Source interface {
	// Read returns what stands behind a sequence, in order. No answer is
	// messages.BrokerAway.
	Read(ctx context.Context, after uint64) ([]Stored, error)
}

// Sink is where the records of one run are appended.
type Sink interface {
	// Run names it.
	Run() string
	// Append writes one record if the last one of the run has this sequence, 0 for none.
	// It fails with ErrLost when another one stands there, and with anything else when it is
	// not known what became of it.
	Append(ctx context.Context, data []byte, last uint64) (sequence uint64, err error)
}

// ErrLost says that somebody else has appended: nothing was written.
var ErrLost = errors.New("the journal has another last record")

const (
	answerWithin = 5 * time.Second
	// maxRecords bounds what one replay reads.
	maxRecords = 1 << 17

	codeNoMessage = 10037
	codeWrongLast = 10071
	codeInFlight  = 10164 // another append is under way
)

type refusal struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

// Stream reads and appends the journal of one run over a connection: the account's own,
// or a driver's that may read the whole stream. Its reads come from the stream's leader.
type Stream struct {
	nc                 *nats.Conn
	run, name, subject string
}

// Over is the journal of a run over a connection, which stays the caller's.
func Over(nc *nats.Conn, space, run string) (*Stream, error) {
	if err := CheckRun(run); err != nil {
		return nil, err
	}
	return &Stream{nc: nc, run: run, name: StreamName(space), subject: Subject(space, run)}, nil
}

// Run is Sink.
func (s *Stream) Run() string { return s.run }

// Read is Source. It asks for one record after the other, and makes no consumer.
func (s *Stream) Read(ctx context.Context, after uint64) ([]Stored, error) {
	var all []Stored
	for {
		one, found, err := s.next(ctx, after+1)
		if err != nil || !found {
			return all, err
		}
		if len(all) == maxRecords {
			return nil, messages.JournalDamaged.Because("more than %d records", maxRecords)
		}
		all, after = append(all, one), one.Sequence
	}
}

func (s *Stream) next(ctx context.Context, from uint64) (Stored, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	ask, _ := json.Marshal(struct { // a string and a number always marshal
		Seq  uint64 `json:"seq"`
		Next string `json:"next_by_subj"`
	}{from, s.subject})
	reply, err := s.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+s.name, ask)
	if err != nil {
		return Stored{}, false, messages.BrokerAway.From(err)
	}
	var answer struct {
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Data    []byte `json:"data"`
		} `json:"message"`
		Error *refusal `json:"error"`
	}
	switch err := json.Unmarshal(reply.Data, &answer); {
	case err != nil:
		return Stored{}, false, messages.BrokerAway.From(err)
	case answer.Error != nil && answer.Error.Code == codeNoMessage:
		return Stored{}, false, nil
	case answer.Error != nil:
		return Stored{}, false, messages.BrokerAway.From(fmt.Errorf("%s (%d)", answer.Error.Description, answer.Error.Code))
	case answer.Message.Subject != s.subject || answer.Message.Seq < from:
		return Stored{}, false, messages.JournalDamaged.Because("another record was answered")
	}
	return Stored{answer.Message.Seq, answer.Message.Data}, true, nil
}

// Append is Sink. The stream takes one append at a time: while another one is under way
// it is sent again.
func (s *Stream) Append(ctx context.Context, data []byte, last uint64) (uint64, error) {
	m := nats.NewMsg(s.subject)
	m.Data = data
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(last, 10))
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for pause := time.Millisecond; ; pause *= 2 {
		reply, err := s.nc.RequestMsgWithContext(ctx, m)
		if err != nil {
			return 0, err
		}
		var answer struct {
			Stream string   `json:"stream"`
			Seq    uint64   `json:"seq"`
			Error  *refusal `json:"error"`
		}
		switch err := json.Unmarshal(reply.Data, &answer); {
		case err != nil:
			return 0, err
		case answer.Error == nil && answer.Stream == s.name && answer.Seq > 0:
			return answer.Seq, nil
		case answer.Error == nil:
			return 0, errors.New("another stream took the record")
		case answer.Error.Code == codeWrongLast:
			return 0, ErrLost
		case answer.Error.Code != codeInFlight:
			return 0, fmt.Errorf("%s (%d)", answer.Error.Description, answer.Error.Code)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 0, ErrLost // it was refused each time: somebody else's stands there, or will
		}
	}
}
