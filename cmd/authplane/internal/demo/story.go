package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// stepTime is how long one step may take before it has failed.
const stepTime = 20 * time.Second

// Subject is the service the story is about, with broker and identity provider.
type Subject interface {
	Record() service.Record
	Status() messages.Status
	Tree() []messages.Actor
	Connections() []messages.Connection
	// Events yields what happens in the tree until the context ends.
	Events(ctx context.Context) <-chan messages.Event
	// Kill ends one life of the actor at path and tells which.
	Kill(ctx context.Context, path, how string) (string, uint64, error)
	// Close closes the space alone; Closed is closed once nothing of it is left.
	Close(ctx context.Context) error
	Closed() <-chan struct{}
}

// Stage puts the subject up and takes it down again.
type Stage interface {
	// Start starts the subject.
	Start(ctx context.Context) (Subject, error)
	// Stop takes down whatever is left, however the story ended.
	Stop(ctx context.Context) error
}

// A Line is one step that was told.
type Line struct {
	Step string `json:"step"`
	OK   bool   `json:"ok"`
	// Told is what was checked, or what went wrong.
	Told string        `json:"told"`
	Took time.Duration `json:"-"`
	// Millis is Took in whole milliseconds.
	Millis int64 `json:"took_ms"`
}

// story is what the steps hand on to each other.
type story struct {
	stage   Stage
	subject Subject
	client  *service.Client
	actors  []string // the paths of those that stand while the space does
	alice   person
	bob     person
}

type step struct {
	name string
	do   func(*story, context.Context) (told string, err error)
}

// steps is the story. Each step leans on those before it.
func steps() []step {
	return []step{
		{"boot", (*story).boot},
		{"grant", (*story).grant},
		{"log in", (*story).logIn},
		{"connect", (*story).connect},
		{"talk", (*story).talk},
		{"eavesdrop", (*story).eavesdrop},
		{"overreach", (*story).overreach},
		{"revoke", (*story).revoke},
		{"explain", (*story).explain},
		{"retire", (*story).retire},
		{"kill", (*story).killEverything},
		{"go on", (*story).goOn},
		{"close", (*story).close},
		{"inventory", (*story).inventory},
	}
}

// Tell tells the story and calls line after every step. It stops at the first step
// that fails, and takes the stage down in any case.
func Tell(ctx context.Context, stage Stage, line func(Line)) (err error) {
	s := &story{stage: stage}
	defer func() { err = errors.Join(err, s.end()) }()
	for _, step := range steps() {
		began := time.Now()
		told, failed := s.take(ctx, step)
		took := time.Since(began)
		l := Line{Step: step.name, OK: failed == nil, Told: told, Took: took, Millis: took.Milliseconds()}
		if failed != nil {
			l.Told = failed.Error()
		}
		line(l)
		if failed != nil {
			return fmt.Errorf("%s: %w", step.name, failed)
		}
	}
	return nil
}

func (s *story) take(ctx context.Context, step step) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	return step.do(s, ctx)
}

// end leaves nothing of the story running, also when it was broken off.
func (s *story) end() error {
	s.alice.leave()
	s.bob.leave()
	if s.client != nil {
		s.client.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	return s.stage.Stop(ctx)
}

// until asks again and again whether something holds yet. It is for what tells
// nobody when it changes.
func until(ctx context.Context, holds func() (bool, error)) error {
	const pause = 10 * time.Millisecond
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
