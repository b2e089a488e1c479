package rail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
)

const (
	svc     = "ASVC"
	owner   = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	uid     = "uuuuuuuuuuuuuuuuuuuuuuuuuuuu"
	another = "vvvvvvvvvvvvvvvvvvvvvvvvvvvv"
)

var (
	laptop  = messages.Principal{Owner: owner, Actor: "laptop"}
	manager = messages.Principal{Owner: owner, Actor: "manager"}
)

func operationOf(uid string) string { return "r" + uid[1:] }

// authority answers as a test lays out, and notes what was asked.
type authority struct {
	found    messages.Authority
	readErr  error
	asked    messages.RetirementAsked
	askErr   error
	progress messages.OperationProgress
	awaitErr error

	calls  []string
	retire messages.AskRetirement
	wait   time.Duration
	// told hears of every call; nil where nobody listens.
	told func(string)
}

func (a *authority) call(what string) {
	a.calls = append(a.calls, what)
	if a.told != nil {
		a.told(what)
	}
}

func (a *authority) Read(context.Context, messages.ReadAuthority) (messages.Authority, error) {
	a.call("read")
	return a.found, a.readErr
}

func (a *authority) Retire(_ context.Context, m messages.AskRetirement) (messages.RetirementAsked, error) {
	a.retire = m
	a.call("retire")
	return a.asked, a.askErr
}

func (a *authority) Await(_ context.Context, id string, until time.Time) (messages.OperationProgress, error) {
	a.wait = time.Until(until)
	a.call("await " + id)
	return a.progress, a.awaitErr
}

// standing is an authority that has the incarnation active and ends it at once.
func standing() *authority {
	return &authority{
		found: messages.Authority{
			HasHead: true, Head: messages.Head{Principal: laptop, UID: uid, State: messages.HeadActive},
			HasGrant: true, Grant: messages.Grant{Principal: laptop, UID: uid, State: messages.GrantLive},
		},
		asked: messages.RetirementAsked{Principal: laptop, UID: uid, Operation: operationOf(uid)},
		progress: messages.OperationProgress{Operation: messages.Operation{
			ID: operationOf(uid), Kind: messages.Retirement, Principal: laptop, UID: uid, Step: messages.StepDone,
			Began: time.UnixMilli(1000), Ended: time.UnixMilli(1250),
			Outcome: messages.Outcome{Revoked: 2, Evicted: 3, Eviction: messages.EvictionSwept, Servers: []string{"n1"}, Frontiers: map[string]uint64{"WORK": 7}},
		}},
	}
}

func rail(a *authority) *Rail {
	return New(Config{Space: "acme", Callers: svc, Authority: a, OperationOf: operationOf})
}

func info(account, name string) map[string][]string {
	value, _ := json.Marshal(map[string]any{"acc": account, "user": "UX", "name_tag": name, "id": 7})
	return map[string][]string{infoHeader: {string(value)}}
}

// asking is a request for the end of laptop.
func asking(body string) Question {
	return Question{Subject: broker.RetireSubject("acme", laptop, uid), Header: info(svc, "cotal:retire:acme:"+manager.String()), Body: []byte(body)}
}

func TestRetire(t *testing.T) {
	a := standing()
	got, err := rail(a).Retire(t.Context(), asking(`{"op_id":"`+operationOf(uid)+`","wait_ms":60000}`))
	want := Retired{OpID: operationOf(uid), UID: uid, Outcome: "retired", Revoked: 2, Evicted: 3, Eviction: messages.EvictionSwept,
		Servers: []string{"n1"}, Frontiers: map[string]uint64{"WORK": 7}, TookMS: 250}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := (messages.AskRetirement{Principal: laptop, UID: uid, By: "rail:" + manager.String()}); a.retire != want || a.wait < 50*time.Second {
		t.Errorf("asked %+v, waited %s", a.retire, a.wait)
	}
}

// Whatever is refused was not begun.
func TestRefusalsAreNoOps(t *testing.T) {
	target := func(subject string) func(*Question, *authority) {
		return func(q *Question, _ *authority) { q.Subject = subject }
	}
	header := func(h map[string][]string) func(*Question, *authority) {
		return func(q *Question, _ *authority) { q.Header = h }
	}
	body := func(text string) func(*Question, *authority) {
		return func(q *Question, _ *authority) { q.Body = []byte(text) }
	}
	twice := info(svc, "cotal:retire:acme:"+manager.String())
	twice[infoHeader] = append(twice[infoHeader], twice[infoHeader][0])
	prefix := "cotal.acme.rail.auth.retire."
	for name, c := range map[string]struct {
		change func(*Question, *authority)
		want   messages.Error
		// read says that it could not be told before.
		read bool
	}{
		"nobody says who it is":        {header(nil), messages.CallerRefused, false},
		"somebody else says it also":   {header(twice), messages.CallerRefused, false},
		"what is said is no JSON":      {header(map[string][]string{infoHeader: {"{"}}), messages.CallerRefused, false},
		"a header in another case":     {header(map[string][]string{"nats-request-info": info(svc, "x")[infoHeader]}), messages.CallerRefused, false},
		"of another account":           {header(info("ACTRL", "cotal:retire:acme:"+manager.String())), messages.CallerRefused, false},
		"of no account":                {header(info("", "cotal:retire:acme:"+manager.String())), messages.CallerRefused, false},
		"minted for something else":    {header(info(svc, "cotal:other:acme")), messages.CallerRefused, false},
		"minted for another space":     {header(info(svc, "cotal:retire:acme2:"+manager.String())), messages.CallerRefused, false},
		"on behalf of nobody":          {header(info(svc, "cotal:retire:acme:")), messages.CallerRefused, false},
		"on behalf of a garbled name":  {header(info(svc, "cotal:retire:acme:"+manager.String()+".x")), messages.CallerRefused, false},
		"no target":                    {target(prefix + owner + ".laptop"), messages.Malformed, false},
		"too much of a target":         {target(prefix + owner + ".laptop." + uid + ".x"), messages.Malformed, false},
		"another space's":              {target("cotal.acme2.rail.auth.retire." + owner + ".laptop." + uid), messages.Malformed, false},
		"a target that cannot be":      {target(prefix + "local.laptop." + uid), messages.Malformed, false},
		"an incarnation that cannot":   {target(prefix + owner + ".laptop.short"), messages.Malformed, false},
		"no JSON":                      {body("x"), messages.Malformed, false},
		"a list":                       {body("[]"), messages.Malformed, false},
		"an unknown member":            {body(`{"force":true}`), messages.Malformed, false},
		"a member twice":               {body(`{"wait_ms":1,"wait_ms":2}`), messages.Malformed, false},
		"something behind":             {body(`{}{}`), messages.Malformed, false},
		"half an object":               {body(`{"wait_ms":1`), messages.Malformed, false},
		"an id of none":                {body(`{"op_id":""}`), messages.Malformed, false},
		"a null id":                    {body(`{"op_id":null}`), messages.Malformed, false},
		"a wait that is too long":      {body(`{"wait_ms":60001}`), messages.Malformed, false},
		"a wait in another form":       {body(`{"wait_ms":1e3}`), messages.Malformed, false},
		"far too much":                 {body(`{"op_id":"` + strings.Repeat("a", maxBody) + `"}`), messages.Malformed, false},
		"an id that does not derive":   {body(`{"op_id":"` + operationOf(another) + `"}`), messages.OperationUnderived, false},
		"an unreadable record":         {func(_ *Question, a *authority) { a.readErr = messages.RowCorrupt }, messages.Unproved, true},
		"no record can be read":        {func(_ *Question, a *authority) { a.readErr = messages.BrokerAway }, messages.BrokerAway, true},
		"nobody ever was it":           {func(_ *Question, a *authority) { a.found = messages.Authority{} }, messages.IncarnationUnknown, true},
		"another one is current":       {func(_ *Question, a *authority) { a.found.Head.UID, a.found.Grant.UID = another, another }, messages.IncarnationSuperseded, true},
		"another one was the last":     {func(_ *Question, a *authority) { a.found.HasGrant, a.found.Head.UID = false, another }, messages.IncarnationSuperseded, true},
		"another one is granted alone": {func(_ *Question, a *authority) { a.found.HasHead, a.found.Grant.UID = false, another }, messages.IncarnationSuperseded, true},
	} {
		a, q := standing(), asking(`{}`)
		c.change(&q, a)
		_, err := rail(a).Retire(t.Context(), q)
		var wantCalls []string
		if c.read {
			wantCalls = []string{"read"}
		}
		var undone *Undone
		if !errors.Is(err, c.want) || !errors.As(err, &undone) || !reflect.DeepEqual(a.calls, wantCalls) {
			t.Errorf("%s: %v, called %v", name, err, a.calls)
		}
		if c.want == messages.IncarnationSuperseded && !strings.Contains(messages.PublicText(err), another) {
			t.Errorf("%s: it does not name the current one: %v", name, err)
		}
	}
	codes := map[messages.Error]messages.Code{messages.CallerRefused: messages.PermissionDenied, messages.OperationUnderived: messages.PermissionDenied,
		messages.IncarnationSuperseded: messages.Expired, messages.IncarnationUnknown: messages.FailedPrecondition, messages.Unproved: messages.Unavailable}
	for entry, want := range codes {
		if entry.Code != want {
			t.Errorf("%s is %s", entry.Reason, entry.Code)
		}
	}
}

// What comes of a retirement that was asked for, or had ended before.
func TestOutcomes(t *testing.T) {
	op := operationOf(uid)
	for name, c := range map[string]struct {
		change func(*authority)
		calls  []string
		want   string // of the answer
		err    error
	}{
		"ended before": {func(a *authority) { a.found.Head.State = messages.HeadRetired }, []string{"read", "await " + op}, `"already":true,"revoked":2,"evicted":3`, nil},
		"ended before, and another one granted": {func(a *authority) { a.found.Head.State, a.found.Grant.UID = messages.HeadRetired, another },
			[]string{"read", "await " + op}, `"already":true`, nil},
		"ended before there were operations": {func(a *authority) {
			a.found.Head.State, a.awaitErr = messages.HeadRetired, messages.OperationNotFound
		}, []string{"read", "await " + op}, `"already":true,"revoked":0,"evicted":0`, nil},
		"ended before, and the desk is away": {func(a *authority) {
			a.found.Head.State, a.awaitErr = messages.HeadRetired, messages.ActorAway
		}, []string{"read", "await " + op}, "", messages.ActorAway},
		"being ended":         {func(a *authority) { a.found.Head.State = messages.HeadRetiring }, []string{"read", "retire", "await " + op}, `"already":false`, nil},
		"revoked":             {func(a *authority) { a.found.Grant.State = messages.GrantRevoked }, []string{"read", "retire", "await " + op}, `"retired"`, nil},
		"never used":          {func(a *authority) { a.found.HasHead, a.asked.Operation = false, "" }, []string{"read", "retire"}, `"op_id":"","uid":"` + uid + `","outcome":"retired"`, nil},
		"superseded since":    {func(a *authority) { a.askErr = messages.IncarnationEnded }, []string{"read", "retire"}, "", messages.IncarnationSuperseded},
		"no grant ever stood": {func(a *authority) { a.askErr = messages.GrantNotFound }, []string{"read", "retire"}, "", messages.IncarnationUnknown},
		"not asked for":       {func(a *authority) { a.askErr = messages.OutcomeUnknown }, []string{"read", "retire"}, "", messages.OutcomeUnknown},
		"not over":            {func(a *authority) { a.progress.Step = messages.StepRevoked }, []string{"read", "retire", "await " + op}, "", messages.OperationPending},
		"not begun":           {func(a *authority) { a.awaitErr = messages.OperationNotFound }, []string{"read", "retire", "await " + op}, "", messages.OperationPending},
		"the desk is away":    {func(a *authority) { a.awaitErr = messages.ActorAway }, []string{"read", "retire", "await " + op}, "", messages.OperationPending},
		"what is said is odd": {func(a *authority) { a.awaitErr = messages.InternalFault }, []string{"read", "retire", "await " + op}, "", messages.InternalFault},
	} {
		a := standing()
		c.change(a)
		got, err := rail(a).Retire(t.Context(), asking(""))
		text, _ := json.Marshal(got)
		if !errors.Is(err, c.err) || c.err == nil && err != nil || !strings.Contains(string(text), c.want) || fmt.Sprint(a.calls) != fmt.Sprint(c.calls) {
			t.Errorf("%s: %s, %v, called %v", name, text, err, a.calls)
		}
		var undone *Undone
		if errors.As(err, &undone) != slices.Contains([]error{messages.IncarnationSuperseded, messages.IncarnationUnknown, messages.ActorAway}, c.err) {
			t.Errorf("%s: %v, and it says of itself that it was undone, or does not", name, err)
		}
		var pending *Pending
		if c.err == messages.OperationPending && (!errors.As(err, &pending) || pending.OpID != op) {
			t.Errorf("%s: %v names no operation", name, err)
		}
	}
}

// Whoever may not wait is told how far it is.
func TestWhoMayNotWait(t *testing.T) {
	for _, may := range []bool{true, false} {
		a, q, told := standing(), asking(`{"wait_ms":60000}`), 0
		q.Waits = func() bool { told++; return may }
		if _, err := rail(a).Retire(t.Context(), q); err != nil || told != 1 || (a.wait > 50*time.Second) != may {
			t.Errorf("%v: %v, told %d times, waited %s", may, err, told, a.wait)
		}
	}
	// Nobody waits for what is refused, or over.
	for name, change := range map[string]func(*Question, *authority){
		"refused":    func(q *Question, _ *authority) { q.Header = nil },
		"over":       func(_ *Question, a *authority) { a.found.Head.State = messages.HeadRetired },
		"never used": func(_ *Question, a *authority) { a.found.HasHead, a.asked.Operation = false, "" },
		"not asked":  func(q *Question, _ *authority) { q.Body = []byte(`{"wait_ms":0}`) },
	} {
		a, q := standing(), asking("")
		q.Waits = func() bool { t.Errorf("%s: it waits", name); return true }
		change(&q, a)
		_, _ = rail(a).Retire(t.Context(), q)
	}
}

// A rail that ends in the middle of a question says that it is away, and no more than
// it knows.
func TestTheRailEndsMeanwhile(t *testing.T) {
	op := operationOf(uid)
	for name, c := range map[string]struct {
		at     string
		change func(*authority)
		want   messages.Error
		undone bool
	}{
		"at the read":             {"read", func(a *authority) { a.readErr = context.Canceled }, messages.PlaneAway, true},
		"at the write":            {"retire", func(a *authority) { a.askErr = context.Canceled }, messages.PlaneAway, false},
		"at the wait":             {"await " + op, func(a *authority) { a.awaitErr = context.Canceled }, messages.OperationPending, false},
		"at what ended before it": {"await " + op, func(a *authority) { a.found.Head.State, a.awaitErr = messages.HeadRetired, context.Canceled }, messages.PlaneAway, true},
	} {
		ctx, end := context.WithCancel(t.Context())
		a := standing()
		c.change(a)
		a.told = func(call string) {
			if call == c.at {
				end()
			}
		}
		_, err := rail(a).Retire(ctx, asking(""))
		var undone *Undone
		if end(); !errors.Is(err, c.want) || errors.As(err, &undone) != c.undone {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	q := Question{Subject: broker.DescribeSubject("acme"), Header: info(svc, "anybody")}
	got, err := rail(standing()).Describe(q)
	if err != nil || got.Retire != "cotal.acme.rail.auth.retire.{owner}.{actor}.{uid}" || got.Service != "auth" || got.MaxWaitMS != 60000 {
		t.Errorf("got %+v, %v", got, err)
	}
	q.Body = []byte("{}")
	if _, err := rail(standing()).Describe(q); !errors.Is(err, messages.Malformed) {
		t.Errorf("got %v", err)
	}
	if _, err := rail(standing()).Describe(Question{}); !errors.Is(err, messages.CallerRefused) {
		t.Errorf("got %v", err)
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"op_id":"x","wait_ms":0}`, `{"wait_ms":-0}`, `{"op_id":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q := asking("")
		q.Body = body
		ask, err := rail(standing()).read(q)
		if err == nil && (ask.wait < 0 || ask.wait > MaxWait) {
			t.Errorf("%q waits %s", body, ask.wait)
		}
	})
}
