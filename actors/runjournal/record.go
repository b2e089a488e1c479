package runjournal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/messages"
)

const (
	version       = 1
	largestNumber = 1<<53 - 1 // every JSON reader holds it exactly
	maxHolder     = 128
)

// Kind says what a record is.
type Kind string

const (
	// Activation is the beginning of a driver.
	Activation Kind = "activation"
	// Step is what a driver wrote down.
	Step Kind = "step"
)

// Lease is the right to drive a run.
type Lease struct {
	// Holder names the driver: 1 to 128 characters of [A-Za-z0-9_.-].
	Holder string
	// Token counts the attempts at the run, from 1.
	Token uint64
	// Epoch is that of the process of the service's instance, from 0.
	Epoch uint64
}

func (l Lease) check() error {
	if l.Holder == "" || len(l.Holder) > maxHolder || strings.ContainsFunc(l.Holder, func(r rune) bool { return !isHolderRune(r) }) {
		return messages.Malformed.Because("a holder is 1 to %d characters of [A-Za-z0-9_.-]", maxHolder)
	}
	if l.Token < 1 || l.Token > largestNumber || l.Epoch > largestNumber {
		return messages.Malformed.Because("a lease has a token from 1 and an epoch from 0")
	}
	return nil
}

func isHolderRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '-'
}

// Record is one record of a journal.
type Record struct {
	Kind Kind
	Run  string
	// N counts the records of the run, from 0, without a gap.
	N uint64
	// At is the writer's clock in whole milliseconds; nothing is decided by it.
	At time.Time

	// Lease is an activation's, and ReplayedTo the sequence of the record before it: 0 for
	// the first.
	Lease      Lease
	ReplayedTo uint64

	// Entry is a step's: one JSON object.
	Entry json.RawMessage

	// Sequence is the stream's; it is no part of what is written.
	Sequence uint64
}

type activationFields struct {
	V            int    `json:"v"`
	Kind         Kind   `json:"kind"`
	Run          string `json:"run"`
	N            uint64 `json:"n"`
	Holder       string `json:"holder"`
	FencingToken uint64 `json:"fencingToken"`
	Epoch        uint64 `json:"epoch"`
	ReplayedTo   uint64 `json:"replayedTo"`
	At           int64  `json:"at"`
}

type stepFields struct {
	V     int             `json:"v"`
	Kind  Kind            `json:"kind"`
	Run   string          `json:"run"`
	N     uint64          `json:"n"`
	At    int64           `json:"at"`
	Entry json.RawMessage `json:"entry"`
}

// Encode writes a record in its one form, and refuses one that Decode would not take.
func Encode(r Record) ([]byte, error) {
	var fields any = stepFields{version, r.Kind, r.Run, r.N, r.At.UnixMilli(), r.Entry}
	if r.Kind == Activation {
		fields = activationFields{version, r.Kind, r.Run, r.N, r.Lease.Holder, r.Lease.Token, r.Lease.Epoch, r.ReplayedTo, r.At.UnixMilli()}
	}
	data, err := canonical(fields)
	if err == nil {
		_, err = Decode(data)
	}
	if err != nil {
		return nil, messages.Malformed.From(err)
	}
	return data, nil
}

// Decode reads what Encode wrote, and refuses everything else with
// messages.JournalDamaged: unknown, doubled, missing or reordered fields, whatever
// stands behind the record, and values out of range.
func Decode(data []byte) (Record, error) {
	r, err := decode(data)
	if err != nil {
		return Record{}, messages.JournalDamaged.Because("a record %v", err)
	}
	return r, nil
}

func decode(data []byte) (Record, error) {
	var head struct {
		Kind Kind `json:"kind"`
	}
	if len(data) > MaxRecord || !utf8.Valid(data) || json.Unmarshal(data, &head) != nil {
		return Record{}, errors.New("is no JSON of ours")
	}
	var r Record
	var v int
	var at int64
	switch head.Kind {
	case Activation:
		var f activationFields
		if !exactly(data, &f) {
			return Record{}, errors.New("is not in canonical form")
		}
		v, at = f.V, f.At
		r = Record{Kind: f.Kind, Run: f.Run, N: f.N, Lease: Lease{f.Holder, f.FencingToken, f.Epoch}, ReplayedTo: f.ReplayedTo}
		if f.ReplayedTo > largestNumber || r.Lease.check() != nil {
			return Record{}, errors.New("has no lease")
		}
	case Step:
		var f stepFields
		if !exactly(data, &f) {
			return Record{}, errors.New("is not in canonical form")
		}
		v, at = f.V, f.At
		r = Record{Kind: f.Kind, Run: f.Run, N: f.N, Entry: f.Entry}
		if !isObject(f.Entry) {
			return Record{}, errors.New("has no entry")
		}
	default:
		return Record{}, errors.New("is of no kind")
	}
	if v != version || r.N > largestNumber || at <= 0 || at > largestNumber || CheckRun(r.Run) != nil {
		return Record{}, errors.New("has a value out of range")
	}
	r.At = time.UnixMilli(at).UTC()
	return r, nil
}

func canonical(fields any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func exactly[F any](data []byte, fields *F) bool {
	if json.Unmarshal(data, fields) != nil {
		return false
	}
	again, err := canonical(fields)
	return err == nil && bytes.Equal(again, data)
}

// isObject reports whether raw is one JSON object in which, at any depth, no name
// stands twice.
func isObject(raw json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if len(raw) == 0 || raw[0] != '{' || !walk(dec) {
		return false
	}
	_, err := dec.Token()
	return errors.Is(err, io.EOF)
}

// walk reads one value and reports whether no name stands twice in it. How deep values
// may be, the decoder bounds.
func walk(dec *json.Decoder) bool {
	token, err := dec.Token()
	if err != nil {
		return false
	}
	open, nested := token.(json.Delim)
	if !nested {
		return true
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			text, isText := name.(string)
			if err != nil || !isText || seen[text] {
				return false
			}
			seen[text] = true
		}
		if !walk(dec) {
			return false
		}
	}
	_, err = dec.Token()
	return err == nil
}
