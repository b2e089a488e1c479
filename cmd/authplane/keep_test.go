package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/life"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestAStartIsCalledOffByASignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	began := make(chan struct{})
	start := func(ctx context.Context) (running, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	go func() { <-began; signals <- syscall.SIGTERM }()
	if _, asked, err := begin(t.Context(), start, signals); !asked || !errors.Is(err, context.Canceled) {
		t.Errorf("asked %v, %v", asked, err)
	}
}

func TestAStartThatDoesNotUnwindIsLeftAtTheSecondSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	release := make(chan struct{})
	defer close(release)
	start := func(context.Context) (running, error) { <-release; return nil, nil }
	_, _, err := begin(t.Context(), start, signals)
	if !errors.Is(err, life.ErrLate) || exitCode(&verbError{err}) != messages.ExitFailed {
		t.Errorf("got %v, exit %d", err, exitCode(&verbError{err}))
	}
}

func TestWhatAStartLeftWhenCalledOff(t *testing.T) {
	opened := &supervisor.Failure{Path: "reader", Phase: supervisor.PhaseOpen, Cause: context.Canceled}
	stuck := &supervisor.Failure{Path: "writer", Phase: supervisor.PhaseUnwind, Cause: supervisor.ErrStillRunning}
	if e := calledOff(opened); !e.Closed || e.Err != nil {
		t.Errorf("got %+v", e)
	}
	if e := calledOff(&supervisor.Failures{List: []error{opened, stuck}}); e.Closed || !errors.Is(e.Err, stuck) {
		t.Errorf("got %+v", e)
	}
}

func TestTheLastLine(t *testing.T) {
	boom := errors.New("boom")
	tree := &supervisor.Failures{Doing: "close", List: []error{
		&supervisor.Failure{Path: "plane/writer", Label: "cotal:auth-mint:acme", Phase: supervisor.PhaseClose, Cause: boom},
		&supervisor.Failure{Path: "exchange", Phase: supervisor.PhaseClose, Cause: supervisor.ErrStillRunning},
	}}
	live := []messages.Connection{{Label: "one", Ended: true}, {Label: "two"}}
	tests := []struct {
		name        string
		connections []messages.Connection
		ending      life.Ending
		exit        int
		want        ended
		said        string
	}{
		{"well", live[:1], life.Ending{Closed: true}, 0,
			ended{true, live[:1], []string{}}, "closed; all 1 connections have ended"},
		{"nothing opened", nil, life.Ending{Closed: true}, 0, ended{true, []messages.Connection{}, []string{}}, "closed"},
		{"failed", live[:1], life.Ending{Closed: true, Cause: messages.BrokerAway}, 1,
			ended{true, live[:1], []string{messages.BrokerAway.Error()}}, "closed"},
		{"an error tree", live, life.Ending{Err: tree}, 1,
			ended{false, live, []string{"close plane/writer (cotal:auth-mint:acme): boom", "close exchange: still running"}},
			"still connected: two"},
		{"late and silent", nil, life.Ending{}, 1, ended{false, []messages.Connection{}, []string{}}, "not closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out, talk bytes.Buffer
			a := &app{out: &out, err: &talk, json: true}
			err := a.farewell([]lived{{connections: test.connections, Ending: test.ending}})
			if err != nil {
				err = &verbError{err}
			}
			if code := exitCode(err); code != test.exit {
				t.Errorf("exit %d: %v", code, err)
			}
			var got ended
			if err := json.Unmarshal(out.Bytes(), &got); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v in %s", err, out.String())
			}
			a.json = false
			_ = a.farewell([]lived{{connections: test.connections, Ending: test.ending}})
			if !strings.Contains(talk.String(), test.said) {
				t.Errorf("said %q", talk.String())
			}
		})
	}
}
