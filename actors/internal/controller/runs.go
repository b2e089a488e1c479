package controller

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// MaxRunEnvelope is the largest question about a run, in bytes: it has room for the largest
// request that a controller may have to forward.
const MaxRunEnvelope = 128 << 10

// runEnvelope is a question about a run as it is read. id only names it in the answer, but
// for an attempt, which it is bound to.
type runEnvelope struct {
	who     messages.RunController
	id, run string
	request messages.RunRequest
}

// ParseAdmission reads what a controller sends to have a run admitted: one JSON object
// whose members are exactly those of a door after activate, and `run` and `request`; and
// returns request_id besides. This and its neighbours refuse with messages.Malformed, and
// what they return has passed CheckProcess.
func ParseAdmission(body []byte) (ask messages.AdmitRun, id string, err error) {
	e, err := parseRun(body, []string{"request"}, nil, nil)
	return messages.AdmitRun{Controller: e.who, Run: e.run, Request: e.request}, e.id, err
}

// ParseAttempt reads the question for the next driver of a run. Besides the envelope and
// `run` it has `takeover`, `attempt`, `driver` and `mediator`, and may have
// `lifetime_seconds`, and as `request` the one to resume.
func ParseAttempt(body []byte) (ask messages.AttemptRun, err error) {
	e, err := parseRun(body, []string{"takeover", "attempt", "driver", "mediator"}, []string{"lifetime_seconds", "request"},
		func(name string, value json.RawMessage) error {
			switch name {
			case "takeover":
				return text(name, value, &ask.Takeover)
			case "attempt":
				return number(name, value, &ask.Attempt)
			case "driver":
				return text(name, value, &ask.Driver)
			case "mediator":
				return text(name, value, &ask.Mediator)
			}
			return lifetime(name, value, &ask.Lifetime)
		})
	if err == nil {
		err = checkKeys(e.who.Keys, ask.Driver, ask.Mediator)
	}
	ask.Controller, ask.Run, ask.Request, ask.Served = e.who, e.run, e.id, e.request
	return ask, err
}

// ParseOperation reads the question of whoever reads the journal of a run, or answers a
// pause of it. Besides the envelope and `run` it has `key`, and may have `step`, `amend`,
// and as `request` the one that answers.
func ParseOperation(body []byte) (ask messages.OperateRun, id string, err error) {
	e, err := parseRun(body, []string{"key"}, []string{"step", "amend", "request"}, func(name string, value json.RawMessage) error {
		switch name {
		case "key":
			return text(name, value, &ask.Key)
		case "step":
			return text(name, value, &ask.Step)
		}
		return flag(name, value, &ask.Amend)
	})
	if err == nil {
		err = checkKeys(e.who.Keys, ask.Key)
	}
	ask.Controller, ask.Run, ask.Served = e.who, e.run, e.request
	return ask, e.id, err
}

// ParseRevocation reads the revocation of a run. Besides the envelope and `run` it may have
// `reason`.
func ParseRevocation(body []byte) (ask messages.RevokeControllerRun, id string, err error) {
	e, err := parseRun(body, nil, []string{"reason"}, func(name string, value json.RawMessage) error {
		return text(name, value, &ask.Reason)
	})
	ask.Controller, ask.Run = e.who, e.run
	return ask, e.id, err
}

// parseRun reads one question with these members besides the envelope and run; more reads
// those that are not a request.
func parseRun(body []byte, want, may []string, more func(string, json.RawMessage) error) (e runEnvelope, err error) {
	if len(body) > MaxRunEnvelope || !utf8.Valid(body) {
		return e, messages.Malformed.Because("a question about a run is at most %d bytes of UTF-8", MaxRunEnvelope)
	}
	of := []string{"v", "space", "actor", "endpoint", "instance", "epoch", "request_id", "keys", "receipt"}
	var r messages.ControllerRequest
	err = objectWith(body, "", slices.Concat(of, []string{"run"}, want), may, func(name string, value json.RawMessage) error {
		switch {
		case slices.Contains(of, name):
			return envelope{&r}.member(name, value)
		case name == "run":
			return text(name, value, &e.run)
		case name == "request":
			return e.forwarded(value)
		}
		return more(name, value)
	})
	e.id = r.ID
	e.who = messages.RunController{Endpoint: r.Endpoint, Instance: r.Instance, Epoch: r.Epoch, Space: r.Space, Actor: r.Actor, Keys: r.Keys, Receipt: r.Receipt}
	if err == nil {
		err = checkID(e.id)
	}
	if err == nil {
		err = CheckProcess(e.who)
	}
	return e, err
}

// forwarded reads a request as the controller got it: its payload in base64, and where its
// caller signed it `certificate` and `signature`, both of them.
func (e *runEnvelope) forwarded(value json.RawMessage) error {
	q := &e.request
	err := objectWith(value, "request: ", []string{"subject", "payload"}, []string{"certificate", "signature"}, func(name string, value json.RawMessage) error {
		switch name {
		case "subject":
			return text(name, value, &q.Subject)
		case "certificate":
			return text(name, value, &q.Certificate)
		case "signature":
			return text(name, value, &q.Signature)
		}
		return payload(name, value, &q.Payload)
	})
	if err == nil && (q.Certificate == "") != (q.Signature == "") {
		err = messages.Malformed.Because("request: a certificate comes with a signature, and none without the other")
	}
	return err
}

func payload(name string, value json.RawMessage, into *[]byte) error {
	var plain string
	if err := text(name, value, &plain); err != nil {
		return err
	}
	bytes, err := base64.StdEncoding.Strict().DecodeString(plain)
	if err != nil || len(bytes) > runrequest.MaxPayload || base64.StdEncoding.EncodeToString(bytes) != plain {
		return messages.Malformed.Because("%s must be base64 of up to %d bytes", name, runrequest.MaxPayload)
	}
	*into = bytes
	return nil
}

// lifetime reads whole seconds, of which the desk of runs says which are good.
func lifetime(name string, value json.RawMessage, into *time.Duration) error {
	var seconds uint64
	if err := number(name, value, &seconds); err != nil {
		return err
	}
	if seconds == 0 || seconds > uint64(MaxStanding/time.Second) {
		return messages.Malformed.Because("%s must be from 1 to %d", name, int(MaxStanding/time.Second))
	}
	*into = time.Duration(seconds) * time.Second
	return nil
}

func flag(name string, value json.RawMessage, into *bool) error {
	if s := string(value); s != "true" && s != "false" {
		return messages.Malformed.Because("%s must be true or false", name)
	}
	*into = string(value) == "true"
	return nil
}
