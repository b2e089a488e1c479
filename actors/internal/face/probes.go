package face

import (
	"context"
	"net/http"

	"github.com/cotal-ai/authplane/messages"
)

// keysFresh is how long a key set may be cached; rotation waits for it.
const keysFresh = "public, max-age=300"

// live answers GET /livez: the process answers.
func (f *Face) live(_ context.Context, c *call) error {
	c.json(http.StatusOK, map[string]string{"state": "live"})
	return nil
}

// ready answers GET /readyz: connects and exchanges are answered.
func (f *Face) ready(_ context.Context, c *call) error {
	return f.probe(c, func(s messages.SpaceState) bool { return s == messages.SpaceReady })
}

// startup answers GET /startupz: the first start is over, well or not.
func (f *Face) startup(_ context.Context, c *call) error {
	return f.probe(c, func(s messages.SpaceState) bool { return s != messages.SpaceStarting })
}

// probe shows the state but not its cause, which is for the operator.
func (f *Face) probe(c *call, good func(messages.SpaceState) bool) error {
	state, status := f.control.Status().State, http.StatusOK
	if !good(state) {
		status = http.StatusServiceUnavailable
		c.w.Header().Set("Retry-After", "1")
	}
	c.json(status, map[string]messages.SpaceState{"state": state})
	return nil
}

// jwks answers GET /jwks.
func (f *Face) jwks(_ context.Context, c *call) error {
	c.w.Header().Set("Cache-Control", keysFresh)
	c.raw(http.StatusOK, mediaJSON, f.config.Keys.JWKS())
	return nil
}

// metrics answers GET /metrics.
func (f *Face) metrics(_ context.Context, c *call) error {
	f.metricsPage.ServeHTTP(c.w, c.r)
	return nil
}
