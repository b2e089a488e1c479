package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
)

const (
	// lookEvery is how often the meter asks how far an operation is.
	lookEvery = 200 * time.Millisecond
	// widest is how much of a line it writes, so that the line never wraps.
	widest = 79
	// afresh goes to the beginning of the line and empties it.
	afresh = "\r\x1b[K"
)

// meter is one line of a terminal that shows how far an operation is.
type meter struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing more is written (capacity 0)
}

// startMeter writes the line until stop is called.
func startMeter(ctx context.Context, to io.Writer, client *service.Client, id string) *meter {
	ctx, cancel := context.WithCancel(ctx)
	m := &meter{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		m.run(ctx, to, client, id)
	}()
	return m
}

// stop empties the line.
func (m *meter) stop() {
	m.cancel()
	<-m.ended
}

func (m *meter) run(ctx context.Context, to io.Writer, client *service.Client, id string) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	defer func() { _, _ = io.WriteString(to, afresh) }()
	for {
		if line := look(ctx, client, id); line != "" {
			_, _ = io.WriteString(to, afresh+line)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look is the line as of now; empty when it cannot be told. An operation that nobody
// has begun yet is not there yet.
func look(ctx context.Context, client *service.Client, id string) string {
	answer, err := client.Get(ctx, "/v1/operations/"+id)
	var o operation
	if err != nil || decode(answer, &o) != nil {
		return ""
	}
	line := fmt.Sprintf("%s: %s", o.Kind, o.progress())
	if o.WaitingFor != "" {
		line += ", waits for: " + o.WaitingFor
	}
	return shortened(firstLine(line))
}

func shortened(line string) string {
	if runes := []rune(line); len(runes) > widest {
		return strings.TrimSpace(string(runes[:widest-1])) + "…"
	}
	return line
}
