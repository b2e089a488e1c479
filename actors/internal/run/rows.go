package run

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

const (
	rowVersion    = 1
	largestNumber = 1<<53 - 1 // every JSON reader holds it exactly
	maxText       = 256
)

// AdmissionKey and the others say where the rows of a run stand.
func AdmissionKey(endpoint, run string) string { return "admission." + endpoint + "." + run }

// RequestKey is where it stands what a request was used for.
func RequestKey(endpoint, request string) string { return "request." + endpoint + "." + request }

// RevocationKey is where it stands that a run was revoked.
func RevocationKey(endpoint, run string) string { return "revoked." + endpoint + "." + run }

// AttemptKey is where one driver of a run stands.
func AttemptKey(endpoint, run string, attempt uint64) string {
	return attemptsOf(endpoint, run) + strconv.FormatUint(attempt, 10)
}

func attemptsOf(endpoint, run string) string { return "attempt." + endpoint + "." + run + "." }

type admissionFields struct {
	V             int      `json:"v"`
	Endpoint      string   `json:"endpoint"`
	Run           string   `json:"run"`
	Instance      string   `json:"instance"`
	Owner         string   `json:"owner"`
	Actor         string   `json:"actor"`
	UID           string   `json:"uid"`
	GrantRevision uint64   `json:"grantRevision"`
	Publish       []string `json:"publish"`
	Subscribe     []string `json:"subscribe"`
	Subject       string   `json:"subject"`
	Request       string   `json:"request"`
	Witness       string   `json:"witness"`
	AdmittedAt    int64    `json:"admittedAt"` // ms since 1970
	W             string   `json:"w"`
}

func encodeAdmission(a messages.RunAdmission, witness string) ([]byte, error) {
	f := admissionFields{rowVersion, a.Endpoint, a.Run, a.Instance, a.Caller.Owner, a.Caller.Actor, a.UID, a.GrantRevision,
		orNone(a.Publish), orNone(a.Subscribe), a.Subject, a.Request, a.Witness, a.AdmittedAt.UnixMilli(), witness}
	return encode(f, f.fault())
}

// DecodeAdmission reads an admission, or says messages.RowCorrupt.
func DecodeAdmission(row ledger.Row) (messages.RunAdmission, error) {
	var f admissionFields
	if err := decode(row, &f); err != nil {
		return messages.RunAdmission{}, err
	}
	if err := rebuilt(row, f.fault(), AdmissionKey(f.Endpoint, f.Run)); err != nil {
		return messages.RunAdmission{}, err
	}
	return messages.RunAdmission{Endpoint: f.Endpoint, Run: f.Run, Instance: f.Instance, Caller: messages.Principal{Owner: f.Owner, Actor: f.Actor},
		UID: f.UID, GrantRevision: f.GrantRevision, Publish: f.Publish, Subscribe: f.Subscribe, Subject: f.Subject, Request: f.Request,
		Witness: f.Witness, AdmittedAt: time.UnixMilli(f.AdmittedAt).UTC()}, nil
}

func (f admissionFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case ledger.CheckInstance(f.Endpoint, f.Instance) != nil, runjournal.CheckRun(f.Run) != nil:
		return "names no run of an instance"
	case names.CheckPrincipal(messages.Principal{Owner: f.Owner, Actor: f.Actor}) != nil, names.CheckUID(f.UID) != nil:
		return "names no caller"
	case !isCount(f.GrantRevision), !isInstant(f.AdmittedAt):
		return "a number is out of range"
	case f.Publish == nil, f.Subscribe == nil, grants.CheckAllowance(messages.Allowance{Publish: f.Publish, Subscribe: f.Subscribe}) != nil:
		return "the ceiling is none"
	case !isDigest(f.Request), f.Subject == "", len(f.Subject) > 512:
		return "names no request"
	case f.Witness != messages.WitnessSignature && f.Witness != messages.WitnessObservation:
		return "names no witness"
	case names.CheckUID(f.W) != nil:
		return "nothing tells it from another"
	}
	return ""
}

// use is what a request was used for.
type use struct {
	Endpoint, Request, Run string
	// For is `start`, `attempt.<n>`, `answer.<token>` or `amend.<token>`.
	For string
}

type requestFields struct {
	V        int    `json:"v"`
	Endpoint string `json:"endpoint"`
	Request  string `json:"request"`
	Run      string `json:"run"`
	For      string `json:"for"`
}

func (u use) key() string { return RequestKey(u.Endpoint, u.Request) }

func (u use) encode() ([]byte, error) {
	f := requestFields{rowVersion, u.Endpoint, u.Request, u.Run, u.For}
	return encode(f, f.fault())
}

func decodeUse(row ledger.Row) (use, error) {
	var f requestFields
	if err := decode(row, &f); err != nil {
		return use{}, err
	}
	return use{f.Endpoint, f.Request, f.Run, f.For}, rebuilt(row, f.fault(), RequestKey(f.Endpoint, f.Request))
}

func (f requestFields) fault() string {
	kind, what, _ := strings.Cut(f.For, ".")
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.Endpoint, 1), !isDigest(f.Request), runjournal.CheckRun(f.Run) != nil:
		return "names no request of a run"
	case f.For != "start" && !slices.Contains([]string{"attempt", "answer", "amend"}, kind), kind != "start" && !isToken(what, 1):
		return "was used for nothing"
	}
	return ""
}

type revocationFields struct {
	V         int    `json:"v"`
	Endpoint  string `json:"endpoint"`
	Run       string `json:"run"`
	By        string `json:"by"`
	Reason    string `json:"reason"`
	RevokedAt int64  `json:"revokedAt"` // ms since 1970
	W         string `json:"w"`
}

func encodeRevocation(r messages.RunRevocation, witness string) ([]byte, error) {
	f := revocationFields{rowVersion, r.Endpoint, r.Run, r.By, r.Reason, r.RevokedAt.UnixMilli(), witness}
	return encode(f, f.fault())
}

// DecodeRevocation reads a revocation, or says messages.RowCorrupt.
func DecodeRevocation(row ledger.Row) (messages.RunRevocation, error) {
	var f revocationFields
	if err := decode(row, &f); err != nil {
		return messages.RunRevocation{}, err
	}
	r := messages.RunRevocation{Endpoint: f.Endpoint, Run: f.Run, By: f.By, Reason: f.Reason, RevokedAt: time.UnixMilli(f.RevokedAt).UTC()}
	return r, rebuilt(row, f.fault(), RevocationKey(f.Endpoint, f.Run))
}

func (f revocationFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.Endpoint, 1), runjournal.CheckRun(f.Run) != nil:
		return "names no run"
	case f.By == "", !isText(f.By), !isText(f.Reason):
		return "says not who or why"
	case !isInstant(f.RevokedAt), names.CheckUID(f.W) != nil:
		return "says not when"
	}
	return ""
}

type attemptFields struct {
	V          int    `json:"v"`
	Endpoint   string `json:"endpoint"`
	Run        string `json:"run"`
	Instance   string `json:"instance"`
	Attempt    uint64 `json:"attempt"`
	Epoch      uint64 `json:"epoch"`
	Request    string `json:"request"`
	Takeover   string `json:"takeover"`
	Driver     string `json:"driver"`
	Mediator   string `json:"mediator"`
	Head       uint64 `json:"head"`
	ReservedAt int64  `json:"reservedAt"` // s since 1970
	Exp        int64  `json:"exp"`        // s since 1970
	W          string `json:"w"`
}

func encodeAttempt(a messages.RunAttempt, witness string) ([]byte, error) {
	f := attemptFields{rowVersion, a.Endpoint, a.Run, a.Instance, a.Attempt, a.Epoch, a.Request, a.Takeover, a.Driver, a.Mediator, a.Head,
		a.ReservedAt.Unix(), a.Expires.Unix(), witness}
	return encode(f, f.fault())
}

// DecodeAttempt reads an attempt, or says messages.RowCorrupt.
func DecodeAttempt(row ledger.Row) (messages.RunAttempt, error) {
	var f attemptFields
	if err := decode(row, &f); err != nil {
		return messages.RunAttempt{}, err
	}
	a := messages.RunAttempt{Endpoint: f.Endpoint, Run: f.Run, Instance: f.Instance, Attempt: f.Attempt, Epoch: f.Epoch, Request: f.Request,
		Takeover: f.Takeover, Driver: f.Driver, Mediator: f.Mediator, Head: f.Head, ReservedAt: time.Unix(f.ReservedAt, 0).UTC(), Expires: time.Unix(f.Exp, 0).UTC()}
	return a, rebuilt(row, f.fault(), AttemptKey(f.Endpoint, f.Run, f.Attempt))
}

func (f attemptFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case ledger.CheckInstance(f.Endpoint, f.Instance) != nil, runjournal.CheckRun(f.Run) != nil:
		return "names no run of an instance"
	case !isCount(f.Attempt), f.Epoch > largestNumber, f.Head > largestNumber, !isInstant(f.ReservedAt), !isInstant(f.Exp), f.Exp <= f.ReservedAt:
		return "a number is out of range"
	case !isToken(f.Request, 22), !isToken(f.Takeover, 1):
		return "names no question"
	case !nkeys.IsValidPublicUserKey(f.Driver), !nkeys.IsValidPublicUserKey(f.Mediator), f.Driver == f.Mediator:
		return "names no keys"
	case names.CheckUID(f.W) != nil:
		return "nothing tells it from another"
	}
	return ""
}

func encode(fields any, fault string) ([]byte, error) {
	if fault != "" {
		return nil, messages.InternalFault.Because("a row of a run: %s", fault)
	}
	data, err := canonical(fields)
	if err != nil {
		return nil, messages.InternalFault.From(err)
	}
	return data, nil
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

// decode reads a row that we wrote to the letter, and refuses every other.
func decode[F any](row ledger.Row, fields *F) error {
	if err := json.Unmarshal(row.Value, fields); err != nil {
		return ledger.Corrupt(row.Key, "not the JSON of its family")
	}
	again, err := canonical(fields)
	if err != nil || !bytes.Equal(again, row.Value) {
		return ledger.Corrupt(row.Key, "not in canonical form")
	}
	return nil
}

func rebuilt(row ledger.Row, fault, key string) error {
	switch {
	case fault != "":
		return ledger.Corrupt(row.Key, fault)
	case key != row.Key:
		return ledger.Corrupt(row.Key, "names another key")
	}
	return nil
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func isCount(n uint64) bool  { return n >= 1 && n <= largestNumber }
func isInstant(n int64) bool { return n > 0 && n <= largestNumber }

func isDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

func isText(s string) bool {
	return len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func isToken(s string, least int) bool {
	return len(s) >= least && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	})
}
