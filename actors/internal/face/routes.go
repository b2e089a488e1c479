package face

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// endpoint is what one method of one path does, and what it asks of the caller.
type endpoint struct {
	serve func(context.Context, *call) error
	// guarded needs the capability of this start.
	guarded bool
	// queued takes its turn among those that are worked on at once.
	queued bool
	// proves checks a proof of identity, whose failures are limited per peer.
	proves bool
	// oauth answers refusals in the form of RFC 6749.
	oauth bool
	// streams answers without end, so that HEAD makes no sense.
	streams bool
	// waits may have parameters in its query, such as wait, and reads them.
	waits bool
	// media lists the types its body may have; none means that it takes no body.
	media []string
	// most is the largest body, in bytes, where that is more than MaxBody.
	most int64
}

// closed reports whether what this endpoint does not know is refused, instead of being
// done without: whoever sends it means something by it. Probes, documents and what an
// RFC describes pass over it, as their callers expect.
func (e endpoint) closed() bool { return !e.oauth && (e.guarded || len(e.media) > 0) }

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

// route is one path, with a name in braces for each part that varies.
type route struct {
	pattern  string
	segments []string
	methods  map[string]endpoint
}

type routes []*route

// on adds a method of a path to the table.
func (rs *routes) on(method, pattern string, e endpoint) {
	for _, r := range *rs {
		if r.pattern == pattern {
			r.methods[method] = e
			return
		}
	}
	*rs = append(*rs, &route{
		pattern:  pattern,
		segments: strings.Split(pattern, "/"),
		methods:  map[string]endpoint{method: e},
	})
}

// find returns the route of an escaped path and the parts that vary, or nil. It
// never redirects: a path is one of ours to the letter or it is nothing.
func (rs routes) find(path string) (*route, map[string]string) {
	given := strings.Split(path, "/")
	for _, r := range rs {
		if parts, fits := r.match(given); fits {
			return r, parts
		}
	}
	return nil, nil
}

func (r *route) match(given []string) (map[string]string, bool) {
	if len(given) != len(r.segments) {
		return nil, false
	}
	var parts map[string]string
	for i, segment := range r.segments {
		name, varies := strings.CutPrefix(segment, "{")
		if !varies {
			if segment != given[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(given[i])
		if err != nil || value == "" {
			return nil, false
		}
		if parts == nil {
			parts = map[string]string{}
		}
		parts[strings.TrimSuffix(name, "}")] = value
	}
	return parts, true
}

// endpoint finds what a method does; HEAD is GET without its body.
func (r *route) endpoint(method string) (endpoint, bool) {
	if e, is := r.methods[method]; is {
		return e, true
	}
	if method == http.MethodHead {
		e, is := r.methods[http.MethodGet]
		return e, is && !e.streams
	}
	return endpoint{}, false
}

// allow is the Allow header of this path.
func (r *route) allow() string {
	var methods []string
	for method, e := range r.methods {
		methods = append(methods, method)
		if method == http.MethodGet && !e.streams {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// find looks the call's route up.
func (c *call) find(rs routes) error {
	r, parts := rs.find(c.r.URL.EscapedPath())
	if r == nil {
		return messages.NoSuchRoute
	}
	c.route, c.parts = r.pattern, parts
	to, is := r.endpoint(c.r.Method)
	if !is {
		c.w.Header().Set("Allow", r.allow())
		return messages.MethodRefused
	}
	c.to = to
	return nil
}
