package exchange

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	someOwner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	someUID   = "uuuuuuuuuuuuuuuuuuuuuuuuuuuu"
	someOp    = "oooooooooooooooooooooooooooo"
)

// plane answers what the plane's actors would, and notes what it was asked.
type plane struct{ asked []any }

func (p *plane) answer(m any) (any, error) {
	p.asked = append(p.asked, m)
	laptop := messages.Principal{Owner: someOwner, Actor: "laptop"}
	done := messages.OperationProgress{Operation: messages.Operation{ID: someOp, Kind: messages.Takeover, Principal: laptop, UID: someUID, Step: messages.StepDone}}
	switch m := m.(type) {
	case messages.AskRetirement:
		return messages.RetirementAsked{Principal: m.Principal, UID: someUID, Operation: someOp}, nil
	case messages.BeginTakeover, messages.ReadOperation, messages.AwaitOperation:
		return done, nil
	case messages.ListOperations:
		return messages.Operations{Items: []messages.OperationProgress{done}}, nil
	case messages.ReadRoster:
		return messages.KnownServers{Names: []string{"n1", "n2"}}, nil
	case messages.ObserveServers:
		return messages.Roster{Servers: []messages.Server{{Name: "n1", ID: "N1", Answered: true}, {Name: "n2"}}}, nil
	case messages.ForgetServer:
		return messages.KnownServers{Names: []string{"n1"}}, nil
	}
	return nil, messages.InternalFault
}

// Everything goes to the actor that knows, and comes back.
func TestOperationsReachThePlane(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
		asked              []string
	}{
		{"POST", "/v1/retire", `{"owner":"` + someOwner + `","actor":"laptop"}`, 200, `"op_id":"` + someOp, []string{"AskRetirement", "AwaitOperation"}},
		{"POST", "/v1/retire?wait=0", `{"owner":"` + someOwner + `","actor":"laptop"}`, 200, `"op_id":"` + someOp, []string{"AskRetirement", "ReadOperation"}},
		{"POST", "/v1/takeover", `{"owner":"` + someOwner + `","actor":"laptop","op_id":"` + someOp + `"}`, 200, `"outcome":"taken-over"`, []string{"BeginTakeover", "AwaitOperation"}},
		{"GET", "/v1/operations", "", 200, `"operations":[{"op_id":"` + someOp, []string{"ListOperations"}},
		{"GET", "/v1/operations/" + someOp, "", 200, `"uid":"` + someUID, []string{"ReadOperation"}},
		{"GET", "/v1/roster", "", 200, `{"servers":["n1","n2"]}`, []string{"ReadRoster"}},
		{"DELETE", "/v1/roster/n2", "", 200, `{"servers":["n1"]}`, []string{"ObserveServers", "ForgetServer"}},
		{"DELETE", "/v1/roster/n1", "", 412, `"roster.answers"`, []string{"ObserveServers"}}, // it lives
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			s, p := start(t, nil), &plane{}
			s.operates = p.answer
			status, body, err := s.ask(c.method, s.address.URL()+c.path, c.body)
			if err != nil || status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%d %s, %v", status, body, err)
			}
			if len(p.asked) != len(c.asked) {
				t.Fatalf("asked %v", p.asked)
			}
			for i, want := range c.asked {
				if got := reflect.TypeOf(p.asked[i]).Name(); got != want {
					t.Errorf("asked %v", p.asked)
				}
			}
		})
	}
}

// A wait outlives the desk's life: what is waited for goes on.
func TestAWaitOutlivesTheDesk(t *testing.T) {
	s, p := start(t, nil), &plane{}
	s.operates = p.answer
	arrived := make(chan struct{})
	s.before(func(ctx context.Context, m any) {
		if _, await := m.(messages.AwaitOperation); await {
			s.before(nil)
			close(arrived)
			<-ctx.Done() // the desk dies with the question in hand
		}
	})
	answers := make(chan string, 1)
	go func() {
		status, body, err := s.ask("POST", s.address.URL()+"/v1/retire", `{"owner":"`+someOwner+`","actor":"laptop"}`)
		answers <- fmt.Sprint(status, body, err)
	}()
	<-arrived
	_, err := s.tree.Kill("plane/desk", supervisor.Panic)
	must(t, err)
	if answer := <-answers; !strings.HasPrefix(answer, "200") {
		t.Error(answer)
	}
}

// A wait may be longer than anything else the plane is asked for.
func TestAWaitIsPassedOnWhole(t *testing.T) {
	s := start(t, nil)
	s.operates = func(m any) (any, error) {
		if a, is := m.(messages.AwaitOperation); is {
			if left := time.Until(a.Deadline); left < 9*time.Minute {
				return nil, messages.Malformed.Because("only %s", left)
			}
		}
		return (&plane{}).answer(m)
	}
	if status, body, err := s.ask("POST", s.address.URL()+"/v1/retire?wait=600", `{"owner":"`+someOwner+`","actor":"laptop"}`); err != nil || status != 200 {
		t.Errorf("%d %s, %v", status, body, err)
	}
}
