package face

import (
	"context"
	"net/http"

	"github.com/cotal-ai/authplane/messages"
)

// status answers GET /v1/status.
func (f *Face) status(_ context.Context, c *call) error {
	c.json(http.StatusOK, f.control.Status())
	return nil
}

// tree answers GET /v1/tree.
func (f *Face) tree(_ context.Context, c *call) error {
	c.json(http.StatusOK, map[string]any{"actors": listed(f.control.Tree())})
	return nil
}

// connections answers GET /v1/connections.
func (f *Face) connections(_ context.Context, c *call) error {
	c.json(http.StatusOK, map[string]any{"connections": listed(f.control.Connections())})
	return nil
}

// denials answers GET /v1/denials.
func (f *Face) denials(ctx context.Context, c *call) error {
	kept, err := f.control.Denials(ctx)
	if err != nil {
		return err
	}
	c.json(http.StatusOK, map[string]any{"denials": listed(kept)})
	return nil
}

// denial answers GET /v1/denials/{id}.
func (f *Face) denial(ctx context.Context, c *call) error {
	kept, err := f.control.Denials(ctx)
	if err != nil {
		return err
	}
	for _, d := range kept {
		if d.ID == c.parts["id"] {
			c.json(http.StatusOK, d)
			return nil
		}
	}
	return messages.DenialNotFound
}

// kill answers POST /v1/debug/kill, which exists only where faults may be injected.
func (f *Face) kill(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	path, how := in.text("actor"), in.text("how")
	if err := in.done(); err != nil {
		return err
	}
	if path == "" {
		return messages.Malformed.Because("actor is missing")
	}
	switch how {
	case "panic", "stop", "disconnect":
	default:
		return messages.Malformed.Because("how is panic, stop or disconnect")
	}
	killed, generation, err := f.control.Kill(ctx, path, how)
	if err != nil {
		return err
	}
	c.json(http.StatusAccepted, map[string]any{"path": killed, "generation": generation})
	return nil
}
