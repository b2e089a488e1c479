package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// goOn checks that the people noticed nothing of all the deaths.
func (s *story) goOn(ctx context.Context) (string, error) {
	if !s.alice.conn.IsConnected() {
		return "", fmt.Errorf("alice lost her connection: %w", s.alice.conn.LastError())
	}
	if status := s.subject.Status(); status.State != messages.SpaceReady {
		return "", fmt.Errorf("the space is %s: %s", status.State, status.Cause)
	}
	carol := s.alice // the same person, with a second connection
	if err := carol.logIn(ctx, s.client); err != nil {
		return "", err
	}
	if err := carol.join(s.subject.Record()); err != nil {
		return "", err
	}
	defer carol.leave()
	heard, err := carol.conn.SubscribeSync(allowed)
	if err == nil {
		err = carol.conn.FlushWithContext(ctx)
	}
	if err == nil {
		err = s.alice.conn.Publish(question, []byte("still here"))
	}
	if err != nil {
		return "", err
	}
	if _, err := heard.NextMsgWithContext(ctx); err != nil {
		return "", fmt.Errorf("alice speaks to her second connection: %w", err)
	}
	return "alice's connection outlived them all; she logged in anew and came in a second time", nil
}

func (s *story) close(ctx context.Context) (string, error) {
	began := time.Now()
	if err := s.subject.Close(ctx); err != nil {
		return "", err
	}
	select {
	case <-s.subject.Closed():
	case <-ctx.Done():
		return "", fmt.Errorf("closed, and yet something is left: %w", ctx.Err())
	}
	return fmt.Sprintf("in order, without an error, in %d ms", time.Since(began).Milliseconds()), nil
}

func (s *story) inventory(context.Context) (string, error) {
	all := s.subject.Connections()
	for _, c := range all {
		if !c.Ended {
			return "", fmt.Errorf("%s has not ended", c.Label)
		}
	}
	if len(all) == 0 {
		return "", fmt.Errorf("the inventory is empty")
	}
	return fmt.Sprintf("%d connections were opened, %d have ended", len(all), len(all)), nil
}
