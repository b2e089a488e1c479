package face

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// How long a request waits for an operation.
const (
	// defaultWait is for whoever asks for the operation and says nothing else.
	defaultWait = 60 * time.Second
	// maxWait is the longest that may be asked for, also of the wait for a fence.
	maxWait = 10 * time.Minute
	// regrantWait is how long a grant waits for the retirement of what was revoked.
	regrantWait = 10 * time.Second
)

// pending is an operation that somebody asked for and that is not over. It refuses
// with the entry it wraps, and tells the operation besides.
type pending struct {
	refusal error
	id      string
	// waiting says what for; next is empty where the refusal says what leads on.
	waiting, next string
}

func (p *pending) Error() string { return p.refusal.Error() }

// Unwrap gives the refusal.
func (p *pending) Unwrap() error { return p.refusal }

// notYet tells what an operation waits for.
func notYet(entry messages.Error, id string, progress messages.OperationProgress) *pending {
	p := &pending{id: id, waiting: progress.WaitingFor}
	switch {
	case p.waiting != "":
	case progress.ID == "":
		p.waiting = "a process that holds the plane to begin it"
	case progress.Doing != "":
		p.waiting = progress.Doing
	default:
		p.waiting = "what follows the step " + string(progress.Step)
	}
	if entry == messages.OperationPending { // whoever waits for another reason is led on by that
		p.next = cmp.Or(progress.Next, "authplane operations "+id)
	}
	p.refusal = entry.Because("%s %s waits for: %s", cmp.Or(string(progress.Kind), "operation"), id, p.waiting)
	return p
}

// settle waits for an operation to be over, and refuses with entry as long as it is
// not. It keeps no turn meanwhile.
func (f *Face) settle(ctx context.Context, c *call, entry messages.Error, id string, wait time.Duration) (messages.OperationProgress, error) {
	c.yield()
	c.answersWithin(wait)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.draining, cancel)()
	progress, err := f.config.Operations.Await(waiting, id, time.Now().Add(wait))
	switch {
	case err == nil && progress.Step == messages.StepDone:
		return progress, nil
	case err == nil && progress.Step == messages.StepSuperseded:
		return progress, messages.IncarnationEnded.Because("a retirement superseded the takeover %s", id)
	case err == nil, errors.Is(err, messages.OperationNotFound):
		return progress, notYet(entry, id, progress)
	case ctx.Err() == nil && mayStillEnd(err):
		// It is durable that the operation is to be; only who would tell how far it is
		// cannot be asked.
		progress.WaitingFor = messages.PublicText(meant(err))
		return progress, notYet(entry, id, progress)
	default:
		return progress, err
	}
}

// answersWithin says that the answer may take so long, and then its time to be written.
func (c *call) answersWithin(wait time.Duration) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(wait + writeWithin)) // unsupported only where there is no network
}

// mayStillEnd reports whether a failure to ask says nothing about what was asked for.
func mayStillEnd(err error) bool {
	return messages.Describe(meant(err)).Code == messages.Unavailable
}

// wait reads how long the caller waits: whole seconds in the one parameter there may
// be; absent is otherwise.
func (c *call) wait(otherwise time.Duration) (time.Duration, error) {
	given, err := c.query("wait")
	if err != nil {
		return 0, err
	}
	return waitIn(given, otherwise)
}

// query reads the parameters of the query, which may be of these names, and each once.
func (c *call) query(allowed ...string) (url.Values, error) {
	given, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, messages.Malformed.Because("the query cannot be read")
	}
	for name, values := range given {
		if !slices.Contains(allowed, name) || len(values) != 1 {
			return nil, messages.Malformed.Because("the query may have %s, once, and nothing else", strings.Join(allowed, " and "))
		}
	}
	return given, nil
}

// waitIn reads the parameter wait; absent is otherwise.
func waitIn(given url.Values, otherwise time.Duration) (time.Duration, error) {
	if !given.Has("wait") {
		return otherwise, nil
	}
	most := uint64(maxWait / time.Second)
	seconds, is := whole(given.Get("wait"), most)
	if !is {
		return 0, messages.Malformed.Because("wait is a whole number of seconds up to %d", most)
	}
	return time.Duration(seconds) * time.Second, nil
}

// whole reads a whole number up to most, written as one.
func whole(text string, most uint64) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && n <= most && strconv.FormatUint(n, 10) == text
}

func checkOperation(id string) error {
	if names.CheckUID(id) != nil {
		return messages.Malformed.Because("an operation is named by 26 to 32 characters of [a-z0-9]")
	}
	return nil
}
