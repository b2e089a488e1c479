package controller_test

import (
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

// runParsers read what comes by the doors of runs, and tell what they read.
var runParsers = map[string]func([]byte) (who messages.RunController, run string, err error){
	"admit": func(body []byte) (messages.RunController, string, error) {
		ask, _, err := controller.ParseAdmission(body)
		return ask.Controller, ask.Run, err
	},
	"attempt": func(body []byte) (messages.RunController, string, error) {
		ask, err := controller.ParseAttempt(body)
		return ask.Controller, ask.Run, err
	},
	"operate": func(body []byte) (messages.RunController, string, error) {
		ask, _, err := controller.ParseOperation(body)
		return ask.Controller, ask.Run, err
	},
	"revoke": func(body []byte) (messages.RunController, string, error) {
		ask, _, err := controller.ParseRevocation(body)
		return ask.Controller, ask.Run, err
	},
}

const runName = "run-0000000000000000000000000000000a"

// runBodies are whole questions of a process, one for each door, with all that they may
// have; optional names what each may lack.
func runBodies(t testing.TB, p messages.RunController) (bodies map[string]map[string]any, optional map[string][]string) {
	whole := func(more map[string]any) map[string]any {
		k := p.Keys
		e := map[string]any{"v": 1, "space": p.Space, "actor": p.Actor, "endpoint": p.Endpoint, "instance": p.Instance, "epoch": p.Epoch,
			"request_id": strings.Repeat("q", 22), "receipt": p.Receipt.Reveal(), "run": runName,
			"keys": map[string]any{"supervisor": k.Supervisor, "executor": k.Executor, "server": k.Server, "recorder": k.Recorder, "ledger": k.Ledger}}
		maps.Copy(e, more)
		return e
	}
	request := map[string]any{"subject": "run.s", "payload": base64.StdEncoding.EncodeToString([]byte("{}")), "certificate": "c", "signature": "s"}
	return map[string]map[string]any{
		"admit": whole(map[string]any{"request": request}),
		"attempt": whole(map[string]any{"takeover": "t1", "attempt": 1, "driver": user(t), "mediator": user(t), "lifetime_seconds": 60,
			"request": request}),
		"operate": whole(map[string]any{"key": user(t), "step": "a", "amend": true, "request": request}),
		"revoke":  whole(map[string]any{"reason": "enough"}),
	}, map[string][]string{"attempt": {"lifetime_seconds", "request"}, "operate": {"step", "amend", "request"}, "revoke": {"reason"}}
}

func someProcess(t testing.TB) messages.RunController {
	return messages.RunController{Endpoint: endpoint, Instance: instance, Epoch: 3, Space: "acme", Actor: boss.Actor, Receipt: messages.NewSecret("the-receipt"),
		Keys: messages.ControllerKeys{Supervisor: user(t), Executor: user(t), Server: user(t), Recorder: user(t), Ledger: user(t)}}
}

// Every door of runs takes its members and no other, each of its own type and once; above
// all it takes none without a receipt.
func TestQuestionsAboutRunsAreClosed(t *testing.T) {
	p := someProcess(t)
	bodies, optional := runBodies(t, p)
	for door, whole := range bodies {
		parse := runParsers[door]
		got, run, err := parse(written(t, whole))
		if err != nil || run != runName || got.Receipt.Reveal() != "the-receipt" || got.Keys != p.Keys || got.Epoch != 3 || got.Endpoint != endpoint ||
			got.Instance != instance || got.Space != "acme" || got.Actor != boss.Actor || !got.Principal.IsZero() {
			t.Fatalf("%s: %+v, %v", door, got, err)
		}
		refuses := func(what string, body []byte) {
			t.Helper()
			if _, _, err := parse(body); !errors.Is(err, messages.Malformed) {
				t.Errorf("%s at %s: %v", what, door, err)
			}
		}
		damage(t, whole, func(what string, damaged map[string]any) {
			if slices.ContainsFunc(optional[door], func(name string) bool { return what == name+" is missing" }) {
				if _, _, err := parse(written(t, damaged)); err != nil {
					t.Errorf("%s at %s: %v", what, door, err)
				}
				return
			}
			refuses(what, written(t, damaged))
		})
		body := string(written(t, whole))
		refuses("something behind", []byte(body+"{}"))
		refuses("a member twice", []byte(strings.Replace(body, `"run":`, `"run":"x","run":`, 1)))
		refuses("a case", []byte(strings.Replace(body, `"run":`, `"Run":`, 1)))
		refuses("no UTF-8", []byte(strings.Replace(body, "the-receipt", "\xff", 1)))
		refuses("half", []byte(body[:len(body)-1]))
		refuses("too much", []byte(strings.Repeat(" ", controller.MaxRunEnvelope)+body))
		for what, change := range map[string]func(map[string]any){
			"commands":          func(m map[string]any) { m["commands"] = []string{"start"} },
			"a ceiling":         func(m map[string]any) { m["ceiling"] = []string{">"} },
			"who revokes":       func(m map[string]any) { m["by"] = "somebody" },
			"a short id":        func(m map[string]any) { m["request_id"] = "short" },
			"two keys the same": func(m map[string]any) { m["keys"] = with(m["keys"], "server", p.Keys.Ledger) },
			"no key":            func(m map[string]any) { m["keys"] = with(m["keys"], "server", "Ux") },
			"a large endpoint":  func(m map[string]any) { m["endpoint"] = "Runner" },
			"no instance":       func(m map[string]any) { m["instance"] = "a b" },
		} {
			damaged := maps.Clone(whole)
			change(damaged)
			refuses(what, written(t, damaged))
		}
	}
}

// with is an object with another member.
func with(of any, name string, value any) map[string]any {
	changed := maps.Clone(of.(map[string]any))
	changed[name] = value
	return changed
}

// What a question about a run says besides is read to the letter, and its keys are none of
// the controller's.
func TestWhatQuestionsAboutRunsSay(t *testing.T) {
	p := someProcess(t)
	bodies, _ := runBodies(t, p)
	full := base64.StdEncoding.EncodeToString(make([]byte, runrequest.MaxPayload))
	for what, c := range map[string]struct {
		door  string
		good  bool
		value func(map[string]any)
	}{
		"a standing key that drives":   {"attempt", false, func(m map[string]any) { m["driver"] = p.Keys.Executor }},
		"a standing key that mediates": {"attempt", false, func(m map[string]any) { m["mediator"] = p.Keys.Server }},
		"one key for both":             {"attempt", false, func(m map[string]any) { m["driver"] = m["mediator"] }},
		"a standing key that answers":  {"operate", false, func(m map[string]any) { m["key"] = p.Keys.Ledger }},
		"no life":                      {"attempt", false, func(m map[string]any) { m["lifetime_seconds"] = 0 }},
		"a fraction of one":            {"attempt", false, func(m map[string]any) { m["lifetime_seconds"] = 60.5 }},
		"a day":                        {"attempt", true, func(m map[string]any) { m["lifetime_seconds"] = 86400 }},
		"more than a day":              {"attempt", false, func(m map[string]any) { m["lifetime_seconds"] = 86401 }},
		"a word for a flag":            {"operate", false, func(m map[string]any) { m["amend"] = "true" }},
		"no amendment":                 {"operate", true, func(m map[string]any) { m["amend"] = false }},
		"not signed":                   {"admit", true, func(m map[string]any) { m["request"] = map[string]any{"subject": "s", "payload": "e30="} }},
		"a signature without a certificate": {"admit", false, func(m map[string]any) {
			m["request"] = map[string]any{"subject": "s", "payload": "e30=", "signature": "s"}
		}},
		"a certificate without a signature": {"admit", false, func(m map[string]any) {
			m["request"] = map[string]any{"subject": "s", "payload": "e30=", "certificate": "s"}
		}},
		"the largest payload":        {"admit", true, func(m map[string]any) { m["request"] = with(m["request"], "payload", full) }},
		"a larger one":               {"admit", false, func(m map[string]any) { m["request"] = with(m["request"], "payload", full+"AAAA") }},
		"a payload that is plain":    {"admit", false, func(m map[string]any) { m["request"] = with(m["request"], "payload", "{}") }},
		"a payload without its ends": {"admit", false, func(m map[string]any) { m["request"] = with(m["request"], "payload", "e30") }},
		"a payload in two lines":     {"admit", false, func(m map[string]any) { m["request"] = with(m["request"], "payload", "e3\n0=") }},
		"a payload with odd bits":    {"admit", false, func(m map[string]any) { m["request"] = with(m["request"], "payload", "e31=") }},
	} {
		changed := maps.Clone(bodies[c.door])
		c.value(changed)
		if _, _, err := runParsers[c.door](written(t, changed)); (err == nil) != c.good || err != nil && !errors.Is(err, messages.Malformed) {
			t.Errorf("%s at %s: %v", what, c.door, err)
		}
	}
	ask, err := controller.ParseAttempt(written(t, bodies["attempt"]))
	if err != nil || ask.Request != strings.Repeat("q", 22) || ask.Takeover != "t1" || ask.Attempt != 1 || ask.Lifetime != time.Minute ||
		ask.Driver != bodies["attempt"]["driver"] || ask.Mediator != bodies["attempt"]["mediator"] || string(ask.Served.Payload) != "{}" || ask.Served.Subject != "run.s" ||
		ask.Served.Certificate != "c" || ask.Served.Signature != "s" {
		t.Errorf("%+v, %v", ask, err)
	}
	operate, id, err := controller.ParseOperation(written(t, bodies["operate"]))
	if err != nil || id != strings.Repeat("q", 22) || operate.Key != bodies["operate"]["key"] || operate.Step != "a" || !operate.Amend || operate.Served.Subject != "run.s" {
		t.Errorf("%+v, %v", operate, err)
	}
	revoke, _, err := controller.ParseRevocation(written(t, bodies["revoke"]))
	if err != nil || revoke.Reason != "enough" {
		t.Errorf("%+v, %v", revoke, err)
	}
}

func FuzzParseRuns(f *testing.F) {
	bodies, _ := runBodies(f, someProcess(f))
	for door, body := range bodies {
		f.Add(door, written(f, body))
	}
	f.Add("admit", []byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, door string, body []byte) {
		parse, found := runParsers[door]
		if !found {
			return
		}
		who, _, err := parse(body)
		if err != nil {
			if !errors.Is(err, messages.Malformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		if err := controller.CheckProcess(who); err != nil || who.Receipt.IsZero() || !who.Principal.IsZero() {
			t.Fatalf("it takes %+v: %v", who, err)
		}
	})
}

// A process is recognized by what is remembered of it: that it prepared with these keys,
// and activated; and nobody is for what was registered and has not come.
func TestWhoIsRecognized(t *testing.T) {
	r := newRig(t)
	known := ledger.NewControllers(r.store, ledger.Options{Now: r.now})
	p := r.program(0)
	recognized := func(what string, epoch uint64, keys messages.ControllerKeys, want error) {
		t.Helper()
		if err := known.Recognize(t.Context(), endpoint, instance, epoch, keys); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	recognized("one that never came", 0, p.keys, messages.ControllerUnprepared)
	p.asks(messages.DoorPrepare)
	recognized("one that only prepared", 0, p.keys, messages.ControllerUnprepared)
	p.receipt = p.asks(messages.DoorActivate).Receipt
	recognized("the one", 0, p.keys, nil)
	recognized("another program", 0, r.program(0).keys, messages.ControllerTaken)
	recognized("one that comes next", 1, p.keys, messages.ControllerUnprepared)
	r.register(boss.Owner)
	next := r.program(1).starts()
	recognized("the next", 1, next.keys, nil)
	recognized("the former one", 0, p.keys, messages.InstanceSuperseded)
}
