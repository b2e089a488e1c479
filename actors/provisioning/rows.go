package provisioning

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/messages"
)

const (
	headerExpect    = "Nats-Expected-Last-Subject-Sequence"
	headerStream    = "Nats-Expected-Stream"
	headerSequence  = "Nats-Sequence"
	headerOperation = "KV-Operation"
	headerStatus    = "Status"

	statusNone = "404"
)

// stored is a row as some server holds it.
type stored struct {
	found    bool
	removed  bool
	mark     string
	value    string
	sequence uint64
}

func rowOf(r messages.FootprintRow) string { return "row " + r.Key + " of " + r.Bucket }

// read reads a row from whichever server has it: it may lag. A bucket that is not there,
// or cannot be read so, is messages.FootprintRefused.
func (s site) read(ctx context.Context, r messages.FootprintRow) (stored, error) {
	limited, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	reply, err := s.nc.RequestWithContext(limited, api+"DIRECT.GET."+streamOf(r)+"."+broker.FootprintSubject(r), nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return stored{}, s.bucket(ctx, r, err)
	case err != nil:
		return stored{}, messages.BrokerAway.From(err)
	case reply.Header.Get(headerStatus) == statusNone:
		return stored{}, nil
	case reply.Header.Get(headerStatus) != "":
		return stored{}, messages.BrokerAway.Because("status %s", reply.Header.Get(headerStatus))
	}
	sequence, err := strconv.ParseUint(reply.Header.Get(headerSequence), 10, 64)
	if err != nil {
		return stored{}, messages.BrokerAway.From(err)
	}
	return stored{found: true, removed: reply.Header.Get(headerOperation) != "", mark: reply.Header.Get(mark),
		value: string(reply.Data), sequence: sequence}, nil
}

func streamOf(r messages.FootprintRow) string { return "KV_" + r.Bucket }

// bucket says why nobody answers for it: err, unless that is for good.
func (s site) bucket(ctx context.Context, r messages.FootprintRow, err error) error {
	var about struct {
		answer
		Config struct {
			Direct bool `json:"allow_direct"`
		} `json:"config"`
	}
	asked := s.ask(ctx, nats.NewMsg(api+"STREAM.INFO."+streamOf(r)), &about)
	switch {
	case asked != nil:
		return refused("bucket "+r.Bucket, asked)
	case !about.Config.Direct:
		return messages.FootprintRefused.Because("bucket %s does not let its rows be read directly", r.Bucket)
	}
	return messages.BrokerAway.From(err)
}

// Row and the rest are footprint.Site.
func (s site) Row(ctx context.Context, r messages.FootprintRow) (footprint.Presence, error) {
	there, err := s.read(ctx, r)
	switch {
	case err != nil:
		return 0, err
	case !there.found:
		return footprint.Absent, nil
	case there.removed:
		return footprint.Other, nil
	case there.mark == s.uid:
		return footprint.Ours, nil
	case there.value == r.Value:
		return footprint.Alike, nil
	}
	return footprint.Other, nil
}

func (s site) MakeRow(ctx context.Context, r messages.FootprintRow) error {
	m := s.message(r)
	m.Data = []byte(r.Value)
	m.Header.Set(mark, s.uid)
	m.Header.Set(headerExpect, "0")
	err := s.put(ctx, r, m)
	if !saidNo(err, codeWrongRevision) {
		return refused(rowOf(r), err)
	}
	there, err := s.Row(ctx, r)
	switch {
	case err != nil:
		return err
	case there == footprint.Ours:
		return nil
	case there == footprint.Absent:
		return messages.BrokerAway.Because("%s reads as missing and is there", rowOf(r))
	}
	return footprint.ErrOther
}

// RemoveRow goes by the row's own sequence where only a mark says that it is ours: a read
// that lags must not take what is there for missing, nor another's for ours.
func (s site) RemoveRow(ctx context.Context, r messages.FootprintRow, made bool) error {
	m := s.message(r)
	m.Header.Set(headerOperation, "DEL")
	if !made {
		m.Header.Set(headerExpect, "0")
	}
	err := s.put(ctx, r, m)
	if saidNo(err, codeWrongRevision) { // something is there
		var there stored
		there, err = s.read(ctx, r)
		switch {
		case err != nil:
		case !there.found:
			return messages.BrokerAway.Because("%s reads as missing and is there", rowOf(r))
		case there.removed || there.mark != s.uid:
			return nil
		default:
			m.Header.Set(headerExpect, strconv.FormatUint(there.sequence, 10))
			err = s.put(ctx, r, m)
		}
	}
	if saidNo(err, codeNoStream) {
		return nil
	}
	return refused(rowOf(r), err)
}

func (s site) message(r messages.FootprintRow) *nats.Msg {
	m := nats.NewMsg(broker.FootprintSubject(r))
	m.Header.Set(headerStream, streamOf(r))
	return m
}

// put writes a row. Where nobody takes it and the bucket is not there, it says that as
// the servers do.
func (s site) put(ctx context.Context, r messages.FootprintRow, m *nats.Msg) error {
	var taken answer
	err := s.ask(ctx, m, &taken)
	if !errors.Is(err, nats.ErrNoResponders) {
		return err
	}
	var about answer
	if asked := s.ask(ctx, nats.NewMsg(api+"STREAM.INFO."+streamOf(r)), &about); asked != nil {
		return asked
	}
	return err
}
