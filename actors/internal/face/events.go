package face

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const (
	// heartbeat shows both ends that a quiet stream still stands.
	heartbeat = 15 * time.Second
	// writeWithin is how long a reader that takes nothing is borne.
	writeWithin = 10 * time.Second
)

// events answers GET /v1/events: server-sent events, one JSON document each, until
// the client leaves or the face drains.
func (f *Face) events(ctx context.Context, c *call) error {
	select {
	case f.streams <- struct{}{}:
		defer func() { <-f.streams }()
	default:
		return messages.Busy.Because("%d event streams are open", MaxStreams)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.draining, cancel)()

	follow := f.control.Events(ctx)
	defer func() {
		cancel()
		for range follow { // until whoever yields them has noticed
		}
	}()
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.WriteHeader(http.StatusOK)
	if !c.push(": following\n\n") {
		return nil
	}
	c.follow(ctx, follow)
	return nil
}

// follow writes until there is nothing more to write, or nobody to write to.
func (c *call) follow(ctx context.Context, events <-chan messages.Event) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			if !c.push(": still here\n\n") {
				return
			}
		case event, open := <-events:
			if !open || !c.pushEvent(event) {
				return
			}
		}
	}
}

func (c *call) pushEvent(event messages.Event) bool {
	document, err := json.Marshal(event)
	if err != nil {
		panic(err) // an event is plain text and a time
	}
	return c.push("data: " + string(document) + "\n\n")
}

// push writes a piece of a stream, and reports whether it could.
func (c *call) push(piece string) bool {
	control := http.NewResponseController(c.w)
	_ = control.SetWriteDeadline(time.Now().Add(writeWithin)) // unsupported only where there is no network
	_, err := io.WriteString(c.w, piece)
	return err == nil && control.Flush() == nil
}
