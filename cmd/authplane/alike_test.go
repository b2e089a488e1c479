package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// heard counts the messages that actors of a space receive, by actor and type.
type heard struct {
	mu     sync.Mutex
	counts map[string]int
}

func (h *heard) count(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[what]
}

// into has a space counted, and suffer what is injected.
func (h *heard) into(inject *faults.Injector) func(*space.Config) {
	return func(c *space.Config) {
		c.Middleware = func(path string) []actor.ReceiverMiddleware {
			return append([]actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
				return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
					h.mu.Lock()
					h.counts[fmt.Sprintf("%s %T", path, e.Message)]++
					h.mu.Unlock()
					next(c, e)
				}
			}}, inject.Middleware(path)...)
		}
	}
}

// alike is what every door says of an operation that is over.
type alike struct {
	OpID    string `json:"op_id"`
	UID     string `json:"uid"`
	Outcome string `json:"outcome"`
	Evicted int    `json:"evicted"`
}

func alikeOf(p messages.OperationProgress) alike {
	outcome := map[messages.OperationKind]string{messages.Retirement: "retired", messages.Takeover: "taken-over"}[p.Kind]
	return alike{p.ID, p.UID, outcome, p.Outcome.Evicted}
}

// TestOneOperationThroughEveryDoor asks for one end over the rail, over HTTP, by the
// command line and from the embedding program, of the holder and of a standby, all at
// once: there is one execution, and everybody is told of it.
func TestOneOperationThroughEveryDoor(t *testing.T) {
	t.Parallel()
	inject, h := &faults.Injector{}, &heard{counts: map[string]int{}}
	w := world.Open(t, h.into(inject))
	w.Poll("the plane to be held", func() bool { s := w.Space.Status().Plane; return s.State == messages.PlaneActive && s.HeldByUs })
	beside, manager := w.Beside(), w.Person("manager", "laptop", "demo.>")
	const takeover = "tttttttttttttttttttttttttttt"
	for _, kind := range []messages.OperationKind{messages.Takeover, messages.Retirement} {
		alice := w.Person("alice", "laptop", "demo.>")
		alice.Connect(nats.NoReconnect())
		p := messages.Principal{Owner: alice.Grant.Owner, Actor: "laptop"}
		body := map[string]string{"owner": p.Owner, "actor": p.Actor, "uid": alice.Grant.UID}
		verb, more := "retire", []string{"--uid", alice.Grant.UID}
		if kind == messages.Takeover {
			verb, more, body["op_id"] = "takeover", append(more, "--op", takeover), takeover
		}
		overHTTP := func(of *world.World) func() (alike, error) {
			return func() (got alike, err error) {
				if status := of.Call("POST", "/v1/"+verb, body, &got); status != http.StatusOK {
					err = fmt.Errorf("status %d", status)
				}
				return got, err
			}
		}
		doors := map[string]func() (alike, error){
			"HTTP": overHTTP(w),
			"CLI": func() (got alike, err error) {
				done := runIn(t, "", append([]string{"--dir", w.Config.StateDir, "--json", verb, slashed(p)}, more...)...)
				if done.code != 0 {
					return got, fmt.Errorf("exit %d: %s", done.code, done.err)
				}
				return got, json.Unmarshal([]byte(done.out), &got)
			},
			"embedding": func() (alike, error) {
				if kind == messages.Takeover {
					done, err := w.Space.Takeover(w.Context(), messages.BeginTakeover{ID: takeover, Principal: p})
					return alikeOf(done), err
				}
				done, err := w.Space.Retire(w.Context(), messages.AskRetirement{Principal: p})
				return alikeOf(done), err
			},
		}
		if kind == messages.Retirement { // the rail has no takeovers, and a standby none to begin
			nc, subject := w.OnBehalf(manager, alice)
			doors["rail"] = func() (got alike, err error) {
				answer, err := nc.Request(subject, []byte(`{"wait_ms":60000}`), world.Patience)
				if err == nil {
					err = json.Unmarshal(answer.Data, &got)
				}
				return got, err
			}
			doors["standby"] = overHTTP(beside)
		}
		held := inject.Arm(faults.Fault{Actor: "plane/retirement/sweeper", Harm: faults.Hold})
		const waits, evictions = "plane/retirement/desk messages.AwaitOperation", "plane/retirement/sweeper retirement.evictTarget"
		waiting, evicted := h.count(waits), h.count(evictions)
		var mu sync.Mutex
		answers := map[string]alike{}
		var all sync.WaitGroup
		for door, ask := range doors {
			all.Go(func() {
				got, err := ask()
				if err != nil {
					t.Errorf("%s by %s: %v", kind, door, err)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[door] = got
			})
		}
		w.Poll("all to wait", func() bool { return h.count(waits)-waiting > len(doors) }) // the embedding program looks first
		held.Disarm()
		all.Wait()
		want := answers["HTTP"]
		if want.OpID == "" || want.UID != alice.Grant.UID || want.Evicted != 1 || want.Outcome == "" {
			t.Errorf("%s: %+v", kind, want)
		}
		for door, got := range answers {
			if got != want {
				t.Errorf("%s by %s: %+v, and by HTTP %+v", kind, door, got, want)
			}
		}
		if times := h.count(evictions) - evicted; times != 1 {
			t.Errorf("%s: evicted %d times", kind, times)
		}
		if n := h.count("plane/retirement/" + want.OpID + " *supervisor.Open"); n != 1 {
			t.Errorf("%s: run %d times", kind, n)
		}
		if kind == messages.Takeover {
			if status := w.Call("DELETE", alice.Path(), nil, nil); status != http.StatusOK {
				t.Errorf("revoke: %d", status)
			}
		}
	}
	standbyTakesNobodyOver(t, w, beside)
}

// standbyTakesNobodyOver asks a process that does not hold the plane for a takeover: it
// refuses, nothing is changed, and the command that it names says who does hold it.
func standbyTakesNobodyOver(t *testing.T, w, beside *world.World) {
	t.Helper()
	bob := w.Person("bob", "laptop", "demo.>")
	w.Settle()
	dir, before := beside.Config.StateDir, w.Rows()
	got := runIn(t, "", "--dir", dir, "takeover", bob.Grant.Owner+"/laptop")
	if got.code != messages.ExitUnavailable || got.out != "" || !strings.Contains(got.err, "ask the one that does") ||
		!strings.Contains(got.err, "next: authplane --dir "+shellWord(dir)+" status") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	if after := w.Rows(); !maps.Equal(before, after) {
		t.Errorf("the records were\n%v and are\n%v", before, after)
	}
	if got := runIn(t, "", "--dir", dir, "status"); got.code != 0 || !strings.Contains(got.out, w.Space.Status().Plane.Holder) {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}
