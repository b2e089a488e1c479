package space_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/faults"
)

// Every door of a space is shut from the moment at which it closes, whatever is still
// open behind it.
func TestEveryDoorIsShutWhileTheSpaceCloses(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(c *space.Config) { c.Public = &space.PublicConfig{Listen: "127.0.0.1:0"} })
	place := h.assignAs("ctl", others, space.ControllerPrincipal(h.Space.PlatformOwner(), others))
	who := messages.Principal{Owner: h.Space.PlatformOwner(), Actor: "svc"}
	ask := controllerOf(t, place, messages.DoorPrepare, "p")
	uid := strings.Repeat("c", 26)
	process := messages.RunController{Endpoint: "ctl", Instance: others, Space: "main", Actor: ask.Actor, Keys: ask.Keys, Receipt: messages.NewSecret(strings.Repeat("A", 43))}
	keys := []string{someUser(t), someUser(t)}
	ctx, s := h.Context(), h.Space
	doors := map[string]func() error{
		"RegisterHostInstance": func() error { return second(s.RegisterHostInstance(ctx, endpoint, instance, who)) },
		"RepairInstance":       func() error { return second(s.RepairInstance(ctx, endpoint, instance)) },
		"ObserveGate":          func() error { return second(s.ObserveGate(ctx, endpoint, instance)) },
		"Instances":            func() error { return second(s.Instances(ctx, messages.ListInstances{})) },
		"AwaitFence":           func() error { return second(s.AwaitFence(ctx, endpoint, instance, 0)) },
		"IssueInstanceCredential": func() error {
			return second(s.IssueInstanceCredential(ctx, endpoint, instance, 0, time.Minute))
		},
		"AskController": func() error {
			return second(s.AskController(ctx, messages.AskController{Person: messages.ControllerPerson{Principal: who}, Request: ask}))
		},
		"Controllers": func() error { return second(s.Controllers(ctx)) },
		"EvictFamily": func() error {
			return second(s.EvictFamily(ctx, messages.EvictFamily{Endpoint: endpoint, Instance: instance, Principals: []messages.Principal{who}}))
		},
		"Retire":         func() error { return second(s.Retire(ctx, messages.AskRetirement{Principal: who, UID: uid})) },
		"Takeover":       func() error { return second(s.Takeover(ctx, messages.BeginTakeover{Principal: who})) },
		"AwaitOperation": func() error { return second(s.AwaitOperation(ctx, uid)) },
		"Operation":      func() error { return second(s.Operation(ctx, uid)) },
		"Operations":     func() error { return second(s.Operations(ctx)) },
		"RevokeHandle":   func() error { return second(s.RevokeHandle(ctx, messages.RevokeHandle{})) },
		"Readiness":      func() error { return second(s.Readiness(ctx, place)) },

		"AskPlatformController": func() error { return second(s.AskPlatformController(ctx, place, ask)) },
		"EvictPlatformFamily":   func() error { return second(s.EvictPlatformFamily(ctx, place, []messages.Principal{who})) },
		"RepairPlatformInstance": func() error {
			return second(s.RepairPlatformInstance(ctx, place))
		},
		"AdmitPlatformRun": func() error {
			return second(s.AdmitPlatformRun(ctx, place, messages.AdmitRun{Controller: messages.RunController{Endpoint: "ctl", Instance: others}}))
		},
		"AttemptPlatformRun": func() error {
			return second(s.AttemptPlatformRun(ctx, place, messages.AttemptRun{Controller: messages.RunController{Endpoint: "ctl", Instance: others}}))
		},
		"OperatePlatformRun": func() error {
			return second(s.OperatePlatformRun(ctx, place, messages.OperateRun{Controller: messages.RunController{Endpoint: "ctl", Instance: others}}))
		},
		"BindRunCaller": func() error { return second(s.BindRunCaller(messages.BindRunCaller{})) },
		"Enroll": func() error {
			return second(s.Enroll(ctx, messages.EnrolMachine{TokenHash: strings.Repeat("a", 64), Principal: who}))
		},
		"Enrolment":  func() error { return second(s.Enrolment(ctx, strings.Repeat("a", 64))) },
		"AdmitRun":   func() error { return second(s.AdmitRun(ctx, messages.AdmitRun{})) },
		"AttemptRun": func() error { return second(s.AttemptRun(ctx, messages.AttemptRun{})) },
		"OperateRun": func() error { return second(s.OperateRun(ctx, messages.OperateRun{})) },
		"RevokeRun":  func() error { return second(s.RevokeRun(ctx, messages.RevokeRun{})) },
		"Runs":       func() error { return second(s.Runs(ctx, messages.ListRuns{})) },
		"Run":        func() error { return second(s.Run(ctx, messages.ShowRun{})) },

		"AdmitControllerRun": func() error {
			return second(s.AdmitControllerRun(ctx, messages.ControllerPerson{Principal: who}, messages.AdmitRun{Controller: process}))
		},
		"AttemptControllerRun": func() error {
			return second(s.AttemptControllerRun(ctx, messages.ControllerPerson{Principal: who}, messages.AttemptRun{Controller: process, Driver: keys[0], Mediator: keys[1]}))
		},
		"OperateControllerRun": func() error {
			return second(s.OperateControllerRun(ctx, messages.ControllerPerson{Principal: who}, messages.OperateRun{Controller: process, Key: keys[0]}))
		},
		"RevokeControllerRun": func() error {
			return second(s.RevokeControllerRun(ctx, messages.ControllerPerson{Principal: who}, messages.RevokeControllerRun{Controller: process}))
		},
	}
	if named := slices.Sorted(maps.Keys(doors)); !slices.Equal(named, doorsOf(s)) {
		t.Errorf("tried are %v, of %v", named, doorsOf(s))
	}
	held := h.injector.Arm(faults.Fault{Actor: "presence", Harm: faults.Hold, Message: &supervisor.Close{}})
	defer held.Disarm()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(h.Context()) }()
	h.AwaitState(messages.SpaceDraining)
	for name, knock := range doors {
		if err := knock(); !errors.Is(err, messages.ServiceClosing) {
			t.Errorf("%s while it closes: %v", name, err)
		}
	}
	held.Disarm()
	h.must(<-closed)
	for name, knock := range doors {
		if err := knock(); !errors.Is(err, messages.ServiceClosing) {
			t.Errorf("%s after it closed: %v", name, err)
		}
	}
}

// someUser is the public key of a user that nobody has.
func someUser(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func second[T any](_ T, err error) error { return err }

// doorsOf names what asks somebody: it takes a context first, and may fail.
func doorsOf(h *space.Handle) (names []string) {
	is := reflect.TypeOf(h)
	contexts, failures := reflect.TypeFor[context.Context](), reflect.TypeFor[error]()
	for i := range is.NumMethod() {
		m := is.Method(i)
		if m.Name == "BindRunCaller" { // asks nobody, and signs
			names = append(names, m.Name)
			continue
		}
		if m.Type.NumIn() < 2 || m.Type.In(1) != contexts || m.Type.NumOut() == 0 || m.Type.Out(m.Type.NumOut()-1) != failures {
			continue
		}
		switch m.Name {
		case "Close", "Denials", "Kill": // the close itself, what is remembered, and harm
		default:
			names = append(names, m.Name)
		}
	}
	return names
}

// Whoever alters what custody told alters nothing there.
func TestConnectionsAreCopies(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	told := h.Space.Connections()
	for i := range told {
		told[i].Label, told[i].Ended = "nobody", true
	}
	if now := h.Space.Connections(); len(now) == 0 || slices.ContainsFunc(now, func(c messages.Connection) bool { return c.Label == "nobody" }) {
		t.Errorf("custody says %v", now)
	}
}
