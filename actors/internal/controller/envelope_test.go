package controller_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// envelopeOf is how a controller writes a request.
func envelopeOf(r messages.ControllerRequest) map[string]any {
	e := map[string]any{"v": 1, "space": r.Space, "actor": r.Actor, "endpoint": r.Endpoint, "instance": r.Instance, "epoch": r.Epoch, "request_id": r.ID,
		"keys": map[string]any{"supervisor": r.Keys.Supervisor, "executor": r.Keys.Executor, "server": r.Keys.Server, "recorder": r.Keys.Recorder, "ledger": r.Keys.Ledger}}
	if !r.Receipt.IsZero() {
		e["receipt"] = r.Receipt.Reveal()
	}
	switch r.Door {
	case messages.DoorActivate:
		e["commands"] = r.Commands
	case messages.DoorSession:
		e["session"] = map[string]any{"id": r.Session.ID, "user": r.Session.User, "expires_at": r.Session.Expires.Format(time.RFC3339)}
	case messages.DoorRetire:
		t := r.Target
		e["target"] = map[string]any{"owner": t.Principal.Owner, "actor": t.Principal.Actor, "uid": t.UID, "op_id": t.Operation, "user": t.User}
	}
	return e
}

func written(t testing.TB, value any) []byte {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Every door takes exactly its members; one that is missing, unknown or of another type
// is refused, wherever it stands.
func TestEnvelopesAreClosed(t *testing.T) {
	r := newRig(t)
	p := r.program(0).starts()
	for _, door := range controller.Doors {
		ask := p.request(door)
		whole := envelopeOf(ask)
		got, err := controller.Parse(door, written(t, whole))
		r.must(err)
		if got.Receipt.Reveal() != ask.Receipt.Reveal() {
			t.Errorf("%s: another receipt", door)
		}
		got.Receipt, ask.Receipt = messages.Secret{}, messages.Secret{}
		if !reflect.DeepEqual(got, ask) {
			t.Errorf("%s: %+v, not %+v", door, got, ask)
		}
		refuses := func(what string, body []byte) {
			t.Helper()
			if _, err := controller.Parse(door, body); !errors.Is(err, messages.Malformed) {
				t.Errorf("%s at %s: %v", what, door, err)
			}
		}
		damage(t, whole, func(what string, damaged map[string]any) { refuses(what, written(t, damaged)) })
		body := string(written(t, whole))
		refuses("something behind", []byte(body+"{}"))
		refuses("a member twice", []byte(strings.Replace(body, `"v":1`, `"v":1,"v":1`, 1)))
		refuses("a member of keys twice", []byte(strings.Replace(body, `"executor":`, `"executor":"x","executor":`, 1)))
		refuses("no object", []byte(`[`+body+`]`))
		refuses("half", []byte(body[:len(body)-1]))
		refuses("too much", []byte(strings.Repeat(" ", controller.MaxEnvelope)+body))
		refuses("a fraction", []byte(strings.Replace(body, `"epoch":0`, `"epoch":0.0`, 1)))
		refuses("a case", []byte(strings.Replace(body, `"space":`, `"Space":`, 1)))
	}
	if _, err := controller.Parse("open", []byte(`{}`)); !errors.Is(err, messages.Malformed) {
		t.Errorf("a door that is none: %v", err)
	}
}

// damage makes what is wrong in one place, of an object and the objects in it.
func damage(t *testing.T, whole map[string]any, try func(what string, damaged map[string]any)) {
	t.Helper()
	for name, value := range whole {
		for what, instead := range map[string]any{"null": nil, "a number": -1, "a list": []any{1}, "an object": map[string]any{"a": "b"}, "empty": ""} {
			damaged := maps.Clone(whole)
			damaged[name] = instead
			try(name+" is "+what, damaged)
		}
		damaged := maps.Clone(whole)
		delete(damaged, name)
		try(name+" is missing", damaged)
		if inner, is := value.(map[string]any); is {
			damage(t, inner, func(what string, within map[string]any) {
				damaged := maps.Clone(whole)
				damaged[name] = within
				try(name+": "+what, damaged)
			})
		}
	}
	damaged := maps.Clone(whole)
	damaged["profile"] = "wide"
	try("an unknown member", damaged)
}

func FuzzParse(f *testing.F) {
	t := &testing.T{}
	keys := messages.ControllerKeys{Supervisor: user(t), Executor: user(t), Server: user(t), Recorder: user(t), Ledger: user(t)}
	for _, door := range controller.Doors {
		ask := messages.ControllerRequest{Door: door, Space: "acme", Actor: "cli", Endpoint: endpoint, Instance: instance, ID: strings.Repeat("i", 22), Keys: keys,
			Commands: []string{"a"}, Receipt: messages.NewSecret("r"), Session: messages.ControllerSession{ID: "s", User: user(t), Expires: time.Unix(2e9, 0).UTC()},
			Target: messages.ControllerTarget{Principal: boss, UID: uid, Operation: ledger.OperationOf(uid), User: user(t)}}
		f.Add(string(door), written(f, envelopeOf(ask)))
	}
	f.Add("prepare", []byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, door string, body []byte) {
		got, err := controller.Parse(messages.ControllerDoor(door), body)
		if err != nil {
			if !errors.Is(err, messages.Malformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		if err := controller.Check(got); err != nil || !slices.Contains(controller.Doors, got.Door) {
			t.Fatalf("it takes %+v: %v", got, err)
		}
		again, err := controller.Parse(got.Door, written(t, envelopeOf(got)))
		if err != nil && got.Session.Expires.Nanosecond() == 0 && got.Session.Expires.Year() < 10000 {
			t.Fatalf("what it takes it does not take again: %+v, %v", got, err)
		}
		if err == nil && (again.ID != got.ID || again.Keys != got.Keys || again.Target != got.Target) {
			t.Fatalf("%+v, then %+v", got, again)
		}
	})
}

func TestStandingLives(t *testing.T) {
	for life, good := range map[time.Duration]bool{4 * time.Second: false, 5 * time.Second: true, 5500 * time.Millisecond: false, time.Hour: true,
		86400 * time.Second: true, 86401 * time.Second: false, -time.Second: false} {
		if err := controller.CheckStanding(life); (err == nil) != good {
			t.Errorf("%s: %v", life, err)
		}
	}
}
