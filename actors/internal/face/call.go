package face

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Limits of one request.
const (
	// MaxBody is the largest body, in bytes, where an endpoint does not take more.
	MaxBody = 64 << 10
	// bodyWithin is how long a body may take to arrive; it is read before its
	// request takes a turn, so that slow senders keep nobody else from working.
	bodyWithin = 10 * time.Second
	// bodyGrace is how long what has not arrived may still take once the face drains.
	bodyGrace = time.Second
)

// call is one request while it is answered.
type call struct {
	face  *Face
	w     *recorder
	r     *http.Request
	id    string
	began time.Time

	route string
	parts map[string]string
	to    endpoint
	body  []byte
	media string

	// giveBack ends the call's turn; nil while it has none.
	giveBack func()

	// about is whom the request is about, as soon as that is known.
	about messages.Principal
	// failure is what was refused, for the log.
	failure error
}

func newCall(f *Face, w http.ResponseWriter, r *http.Request) *call {
	c := &call{face: f, w: &recorder{ResponseWriter: w}, r: r, id: names.NewUID(), began: time.Now(), route: "other"}
	w.Header().Set("X-Request-Id", c.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.ContentLength != 0 {
		// Until the body has been read, an answer ends the connection: otherwise the
		// server would wait for the rest of it before it lets the answer out.
		w.Header().Set("Connection", "close")
	}
	return c
}

// takeTurn waits until the call may work.
func (c *call) takeTurn(ctx context.Context) (err error) {
	c.giveBack, err = c.face.turns.take(ctx)
	return err
}

// yield ends the call's turn, if it has one: it is over, or waits for something that
// takes no work.
func (c *call) yield() {
	if c.giveBack != nil {
		c.giveBack()
		c.giveBack = nil
	}
}

// readBody takes the body in, whole, if this endpoint has one.
func (c *call) readBody() error {
	if len(c.to.media) == 0 {
		return c.noBody()
	}
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(c.to.media, media) {
		return messages.MediaTypeRefused.Because("send %s", strings.Join(c.to.media, " or "))
	}
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return messages.MediaTypeRefused.Because("send the body uncompressed")
	}
	c.media = media
	if most := c.mostBody(); c.r.ContentLength > most {
		return messages.BodyTooLarge.Because("at most %d bytes", most)
	}
	return c.receive()
}

// noBody refuses a body where nothing is read from one, unless it says nothing: callers
// have clients that send an empty JSON value with everything.
func (c *call) noBody() error {
	if !c.to.closed() || c.r.ContentLength == 0 {
		return nil
	}
	if err := c.receive(); err != nil {
		return err
	}
	switch string(bytes.TrimSpace(c.body)) {
	case "", "null", "{}":
		return nil
	}
	return messages.Malformed.Because("send no body")
}

// mostBody is the largest body that the call may have, in bytes.
func (c *call) mostBody() int64 { return max(MaxBody, c.to.most) }

func (c *call) receive() error {
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(bodyWithin)) // unsupported only where there is no network
	hurried := make(chan struct{})
	unhurry := context.AfterFunc(c.face.draining, func() {
		defer close(hurried)
		_ = control.SetReadDeadline(time.Now().Add(bodyGrace))
	})
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.mostBody()))
	if !unhurry() {
		<-hurried // so that it sets no deadline after the one below is lifted
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return messages.BodyTooLarge.Because("at most %d bytes", c.mostBody())
	}
	if err != nil && c.face.draining.Err() != nil {
		return messages.ServiceClosing.From(err)
	}
	if err != nil {
		return messages.Malformed.Because("the body did not arrive")
	}
	c.w.Header().Del("Connection")
	_ = control.SetReadDeadline(time.Time{})
	c.body = body
	return nil
}

// input reads the body by its type.
func (c *call) input() (*input, error) {
	if c.media == mediaForm {
		return readForm(c.body)
	}
	return readJSON(c.body)
}

// contain turns a panic of a handler into a 500, and counts it. What has been
// partly written can only be cut off.
func (c *call) contain() {
	cause := recover()
	if cause == nil {
		return
	}
	c.face.config.Metrics.panicked(c.face.name)
	c.face.config.Logger.Error("a request handler panicked", "request_id", c.id, "face", c.face.name, "route", c.route,
		"panic", describePanic(cause), "stack", string(debug.Stack()))
	if c.w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	c.refuse(messages.InternalFault)
}

// describePanic shows errors and strings, and only the type of anything else,
// whose contents nobody has looked at.
func describePanic(cause any) string {
	switch v := cause.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return fmt.Sprintf("a %T", cause)
}

// report writes the request's log record and counts it.
func (c *call) report() {
	took := time.Since(c.began)
	entry := messages.Error{}
	if c.failure != nil {
		entry = messages.Describe(c.failure)
	}
	c.face.config.Metrics.answered(c.face.name, c.route, c.w.status, entry.Code, took)
	level := slog.LevelDebug
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		level = slog.LevelInfo
	}
	record := []any{"request_id", c.id, "face", c.face.name, "route", c.route, "method", shownMethod(c.r.Method),
		"status", c.w.status, "reason", entry.Reason, "peer", c.r.RemoteAddr, "took", took}
	if c.w.status >= http.StatusInternalServerError {
		if c.r.Context().Err() == nil { // a client that hung up is no news
			level = slog.LevelWarn
		}
		record = append(record, "error", c.failure)
	}
	ctx := context.WithoutCancel(c.r.Context())
	if !c.face.config.Logger.Enabled(ctx, level) {
		return
	}
	if c.failure != nil {
		suppressed, ok := c.face.linesFor(c.w.status).admit()
		if !ok {
			return
		}
		if suppressed > 0 {
			record = append(record, "suppressed", suppressed)
		}
	}
	c.face.config.Logger.Log(ctx, level, "request", record...)
}

// linesFor is what bounds the lines about refusals with this status.
func (f *Face) linesFor(status int) *lines {
	if status >= http.StatusInternalServerError {
		return f.faults
	}
	return f.refusals
}

// shownMethod keeps invented methods out of the log.
func shownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete:
		return method
	}
	return "other"
}

// flush hands the answer to the network before the request counts as ended, so
// that closing cannot cut it off.
func (c *call) flush() { _ = http.NewResponseController(c.w).Flush() }

// recorder remembers the status that was written.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
