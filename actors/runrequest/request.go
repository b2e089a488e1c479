// Package runrequest makes the requests that start, resume and answer runs, so that the
// controller who gets one can show who made it.
//
// A request is published to a subject of its own, which names the service, what is
// asked, and who asks:
//
//	run.<endpoint>.<instance, or any>.<command>.<owner>.<actor>.<uid>.<nonce>
//
// Whoever may make requests is granted that, with his own names in it. He signs with a
// key of his own, which the authority certified to be his (BindRunCaller): the signature
// goes with the request in headers, holds offline, and needs nobody to have listened.
//
// A request without a signature can only be witnessed by whoever saw it published. That
// shows no more than the grants do, since anybody who may publish the subject may have.
package runrequest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/messages"
)

// What is asked for.
const (
	Start  = "start"
	Resume = "resume"
	Answer = "answer"
)

// Any stands in a subject where every instance of the service may take the request.
const Any = "any"

// MaxPayload is the size of a request, in bytes.
const MaxPayload = 64 << 10

// Headers of a signed request.
const (
	HeaderCertificate = "Authplane-Certificate"
	HeaderSignature   = "Authplane-Signature"
)

const (
	prefix  = "run"
	tokens  = 8
	version = 1
	// context begins what is signed, so that no signature is good for anything else.
	context = "authplane run request v1\n"
)

// Subject is where a request is published. Each is used once.
type Subject struct {
	Endpoint string
	// Instance is one of the service's, or Any.
	Instance, Command string
	Caller            messages.Principal
	// UID is the caller's incarnation.
	UID string
	// Nonce is 22 to 64 characters of [A-Za-z0-9_-]; see NewNonce.
	Nonce string
}

// String is the subject as it is published.
func (s Subject) String() string {
	return strings.Join([]string{prefix, s.Endpoint, s.Instance, s.Command, s.Caller.Owner, s.Caller.Actor, s.UID, s.Nonce}, ".")
}

// Pattern is what a caller is granted who may make such requests of every instance.
func (s Subject) Pattern() string {
	s.Instance, s.UID, s.Nonce = "*", "*", "*"
	return s.String()
}

// ParseSubject reads a subject, or says messages.Malformed. Whether the names in it are
// somebody's is for the reader to find out.
func ParseSubject(subject string) (Subject, error) {
	t := strings.Split(subject, ".")
	if len(t) != tokens || t[0] != prefix {
		return Subject{}, messages.Malformed.Because("a request is published to run.<endpoint>.<instance>.<command>.<owner>.<actor>.<uid>.<nonce>")
	}
	s := Subject{t[1], t[2], t[3], messages.Principal{Owner: t[4], Actor: t[5]}, t[6], t[7]}
	for _, token := range t {
		if !isToken(token, 1) {
			return Subject{}, messages.Malformed.Because("a request's subject has tokens of [A-Za-z0-9_-]")
		}
	}
	switch {
	case s.Command != Start && s.Command != Resume && s.Command != Answer:
		return Subject{}, messages.Malformed.Because("a request is to %s, %s or %s", Start, Resume, Answer)
	case !isToken(s.Nonce, 22):
		return Subject{}, messages.Malformed.Because("the nonce of a request is 22 to 64 characters of [A-Za-z0-9_-]")
	}
	return s, nil
}

func isToken(s string, least int) bool {
	return len(s) >= least && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	})
}

// NewNonce names a request for the first and only time.
func NewNonce() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // cannot fail: without randomness the process ends
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// Body is what a request says.
type Body struct {
	// Run is empty to start one, and names it otherwise.
	Run string
	// Step is what is answered; Amend changes an accepted answer.
	Step  string
	Amend bool
	// Instance and Epoch, if Bound, are the only process that may take the request.
	Bound    bool
	Instance string
	Epoch    uint64
	// Input is the service's own: one JSON value, or nothing.
	Input json.RawMessage
}

type bindFields struct {
	Instance string `json:"instance"`
	Epoch    uint64 `json:"epoch"`
}

type bodyFields struct {
	V     int             `json:"v"`
	Run   string          `json:"run,omitempty"`
	Step  string          `json:"step,omitempty"`
	Amend bool            `json:"amend,omitempty"`
	Bind  *bindFields     `json:"bind,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

// Encode writes a body in its one form.
func (b Body) Encode() ([]byte, error) {
	f := bodyFields{V: version, Run: b.Run, Step: b.Step, Amend: b.Amend, Input: b.Input}
	if b.Bound {
		f.Bind = &bindFields{b.Instance, b.Epoch}
	}
	data, err := canonical(f)
	if err == nil {
		_, err = ParseBody(data)
	}
	if err != nil {
		return nil, messages.Malformed.From(err)
	}
	return data, nil
}

// ParseBody reads what Encode wrote, and refuses everything else with
// messages.Malformed. Names that stand twice in Input are the service's to refuse.
func ParseBody(data []byte) (Body, error) {
	var f bodyFields
	if len(data) > MaxPayload || !utf8.Valid(data) || json.Unmarshal(data, &f) != nil {
		return Body{}, messages.Malformed.Because("a request is JSON of up to %d bytes", MaxPayload)
	}
	again, err := canonical(f)
	if err != nil || !bytes.Equal(again, data) || f.V != version {
		return Body{}, messages.Malformed.Because("a request is written in its one form")
	}
	if f.Step != "" && !isToken(f.Step, 1) || f.Amend && f.Step == "" || f.Bind != nil && !isToken(f.Bind.Instance, 1) {
		return Body{}, messages.Malformed.Because("a request names what it is about in tokens of [A-Za-z0-9_-]")
	}
	b := Body{Run: f.Run, Step: f.Step, Amend: f.Amend, Input: f.Input}
	if f.Bind != nil {
		b.Bound, b.Instance, b.Epoch = true, f.Bind.Instance, f.Bind.Epoch
	}
	return b, nil
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

// Digest is that of a payload: `sha256:` and 64 hex digits.
func Digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Statement is what a caller signs: space, subject with its nonce, digest. It names the
// request and no other.
func Statement(space, subject string, payload []byte) []byte {
	return []byte(context + space + "\n" + subject + "\n" + Digest(payload) + "\n")
}

// Sign makes a request that is ready to be published, for a service of a space. key is
// the caller's own, and certificate what the authority said of it.
func Sign(key nkeys.KeyPair, certificate, space string, subject Subject, body Body) (*nats.Msg, error) {
	if _, err := ParseSubject(subject.String()); err != nil {
		return nil, err
	}
	payload, err := body.Encode()
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(subject.String())
	m.Data = payload
	signature, err := key.Sign(Statement(space, m.Subject, payload))
	if err != nil {
		return nil, messages.Malformed.From(err)
	}
	m.Header.Set(HeaderCertificate, certificate)
	m.Header.Set(HeaderSignature, base64.RawURLEncoding.EncodeToString(signature))
	return m, nil
}

// Forward is a request as it arrived, for whoever admits it.
func Forward(m *nats.Msg) messages.RunRequest {
	return messages.RunRequest{Subject: m.Subject, Payload: bytes.Clone(m.Data),
		Certificate: m.Header.Get(HeaderCertificate), Signature: m.Header.Get(HeaderSignature)}
}
