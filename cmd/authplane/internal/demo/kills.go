package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// healing is how long any actor may be away.
const healing = 2 * time.Second

// killEverything kills every actor that stands once, one after another, each in another
// way than the one before it.
func (s *story) killEverything(ctx context.Context) (string, error) {
	ways := []string{"panic", "stop", "disconnect"}
	counts := map[string]int{}
	var slowest time.Duration
	var slow string
	for i, path := range s.actors {
		turn := i % len(ways)
		how, took, err := s.killOne(ctx, path, slices.Concat(ways[turn:], ways[:turn]))
		if err != nil {
			return "", err
		}
		counts[how]++
		if took > slowest {
			slowest, slow = took, path
		}
	}
	var told []string
	for _, way := range ways {
		if counts[way] > 0 {
			told = append(told, fmt.Sprintf("%d by %s", counts[way], way))
		}
	}
	return fmt.Sprintf("%d actors died, %s; each came back, the slowest (%s) after %d ms",
		len(s.actors), strings.Join(told, ", "), slow, slowest.Milliseconds()), nil
}

// killOne kills an actor in the first way that applies to it, and waits until its
// next life is open. The death of another one may have taken it down, and then it is
// back first.
func (s *story) killOne(ctx context.Context, path string, ways []string) (string, time.Duration, error) {
	watching, stop := context.WithTimeout(ctx, healing)
	defer stop()
	events := s.subject.Events(watching)
	if err := s.healed(watching, events, path, 0); err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, err)
	}
	for _, how := range ways {
		began := time.Now()
		_, generation, err := s.subject.Kill(ctx, path, how)
		if errors.Is(err, messages.KillInapplicable) {
			continue
		}
		if err != nil {
			return "", 0, fmt.Errorf("%s %s: %w", how, path, err)
		}
		if err := s.healed(watching, events, path, generation); err != nil {
			return "", 0, fmt.Errorf("%s %s: %w", how, path, err)
		}
		return how, time.Since(began), nil
	}
	return "", 0, fmt.Errorf("%s cannot be killed in any way", path)
}

// healed waits for a later life of the actor to be open, and looks whenever
// something happens in the tree.
func (s *story) healed(ctx context.Context, events <-chan messages.Event, path string, killed uint64) error {
	for {
		for _, a := range s.subject.Tree() {
			if a.Path == path && a.Generation > killed && a.State == "open" {
				return nil
			}
		}
		select {
		case _, more := <-events:
			if !more {
				return fmt.Errorf("not back within %s", healing)
			}
		case <-ctx.Done():
			return fmt.Errorf("not back within %s", healing)
		}
	}
}

// standing lists the paths of the actors that are no places of others. It fails if one
// is not open.
func standing(actors []messages.Actor) (paths []string, err error) {
	for _, a := range actors {
		switch {
		case a.State != "open":
			return nil, fmt.Errorf("%s is %s", a.Path, a.State)
		case !a.Group:
			paths = append(paths, a.Path)
		}
	}
	return paths, nil
}
