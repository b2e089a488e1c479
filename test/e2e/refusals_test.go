package e2e_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// said is what an answer of the rail or of the face says.
type said struct {
	OpID    string `json:"op_id"`
	Outcome string
	Already bool
	Evicted int
	Error   struct {
		Reason, Message, Next string
		Changed               *bool
	}
}

// onTheRail asks a rail that is served.
func onTheRail(w *world.World, nc *nats.Conn, subject, body string) (got said) {
	w.Helper()
	answer, err := nc.Request(subject, []byte(body), world.Patience)
	if err != nil {
		w.Fatalf("%s %q: %v", subject, body, err)
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		w.Errorf("%s: %v", answer.Data, err)
	}
	return got
}

// TestRefusalsChangeNothing asks for ends that may not be asked for, over the rail and
// over HTTP: each is refused for its reason, says that nothing was changed where that is
// promised, and leaves every record as it was.
func TestRefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	w := world.Open(t)
	awaitPlane(w)
	manager, alice, bob := w.Person("manager", "laptop", "demo.>"), w.Person("alice", "laptop", "demo.>"), w.Person("bob", "laptop", "demo.>")
	stranger := world.Person{Grant: world.Grant{Owner: alice.Grant.Owner, Actor: "stranger", UID: bob.Grant.UID}}
	mixed := world.Person{Grant: world.Grant{Owner: bob.Grant.Owner, Actor: "laptop", UID: alice.Grant.UID}}
	former := w.Person("carol", "laptop", "demo.>")
	ended := retire(w, former)
	current := w.Person("carol", "laptop", "demo.>")
	const taken = "tttttttttttttttttttttttttttt"
	if status := w.Call("POST", "/v1/takeover", map[string]string{"owner": bob.Grant.Owner, "actor": "laptop", "op_id": taken}, nil); status != http.StatusOK {
		t.Fatalf("takeover: %d", status)
	}
	var live []*nats.Conn
	for _, sub := range []string{"alice", "bob", "carol"} {
		g := map[string]world.Grant{"alice": alice.Grant, "bob": bob.Grant, "carol": current.Grant}[sub]
		token, status := w.Exchange(sub, "laptop")
		if status != http.StatusOK {
			t.Fatalf("exchange: %d", status)
		}
		live = append(live, w.With(g, token).Connect())
	}
	ours, subject := w.OnBehalf(manager, alice)
	overTheRail(w, ours, subject, `{"op_id":"x"}`) // it is served
	ask := func(target world.Person, body string) func() said {
		nc, subject := w.OnBehalf(manager, target)
		return func() said { return onTheRail(w, nc, subject, body) }
	}
	as := func(name string) func() said {
		nc := w.Service(name, subject)
		return func() said { return onTheRail(w, nc, subject, "") }
	}
	post := func(path string, body map[string]string) func() said {
		return func() (got said) { w.Call("POST", path, body, &got); return got }
	}
	of := func(p world.Person, more ...string) map[string]string {
		body := map[string]string{"owner": p.Grant.Owner, "actor": p.Grant.Actor}
		for i := 0; i < len(more); i += 2 {
			body[more[i]] = more[i+1]
		}
		return body
	}
	cases := map[string]struct {
		ask  func() said
		want messages.Error
	}{
		"rail: another's life":             {ask(mixed, ""), messages.IncarnationSuperseded},
		"rail: of nobody":                  {ask(stranger, ""), messages.IncarnationUnknown},
		"rail: of a former life":           {ask(former, ""), messages.IncarnationSuperseded},
		"rail: another's operation":        {ask(alice, `{"op_id":"`+ended.OpID+`"}`), messages.OperationUnderived},
		"rail: a takeover's operation":     {ask(alice, `{"op_id":"`+taken+`"}`), messages.OperationUnderived},
		"rail: a gate of the caller's own": {ask(alice, `{"serveEndpoint":"svc","serveInstanceId":"i","serveEpoch":0}`), messages.Malformed},
		"rail: far too much":               {ask(alice, strings.Repeat("[", 1<<19)), messages.Malformed},
		"rail: no JSON":                    {ask(alice, "\x00\xff"), messages.Malformed},
		"rail: somebody for nothing":       {as("cotal:other:main"), messages.CallerRefused},
		"rail: of another space":           {as("cotal:retire:other:" + manager.Grant.Owner + ".laptop"), messages.CallerRefused},
		"rail: on behalf of nobody":        {as("cotal:retire:main:"), messages.CallerRefused},
		"retire another's life":            {post("/v1/retire", of(alice, "uid", bob.Grant.UID)), messages.IncarnationEnded},
		"retire nobody":                    {post("/v1/retire", of(stranger)), messages.GrantNotFound},
		"retire by an operation":           {post("/v1/retire", of(alice, "op_id", ended.OpID)), messages.Malformed},
		"take over another's life":         {post("/v1/takeover", of(alice, "uid", bob.Grant.UID)), messages.IncarnationEnded},
		"take over a former life":          {post("/v1/takeover", of(former, "uid", former.Grant.UID)), messages.IncarnationEnded},
		"take over nobody":                 {post("/v1/takeover", of(stranger)), messages.IncarnationUnknown},
		"take over by another's id":        {post("/v1/takeover", of(alice, "op_id", taken)), messages.OperationConflict},
		"take over by a retirement's id":   {post("/v1/takeover", of(alice, "op_id", ended.OpID)), messages.Malformed},
		"forget who never was":             {func() (got said) { w.Call("DELETE", "/v1/roster/n9", nil, &got); return got }, messages.ServerUnknown},
		"revoke with a wish":               {func() (got said) { w.Call("DELETE", alice.Path()+"?uid="+bob.Grant.UID, nil, &got); return got }, messages.Malformed},
		"revoke with a body":               {func() (got said) { w.Call("DELETE", alice.Path(), of(bob), &got); return got }, messages.Malformed},
	}
	w.Settle()
	before := w.Rows()
	for name, c := range cases {
		got := c.ask()
		if got.Error.Reason != c.want.Reason {
			t.Errorf("%s: %+v, want %s", name, got, c.want.Reason)
		}
		if strings.HasPrefix(name, "rail") && (got.Error.Changed == nil || *got.Error.Changed || !strings.Contains(got.Error.Message, "nothing was changed")) {
			t.Errorf("%s: it does not say that nothing was changed: %+v", name, got)
		}
	}
	// The server lets nobody ask for another one's end.
	denied := make(chan error, 1)
	ours.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })
	if err := ours.Publish(w.RetireSubject(bob.Grant.Owner, bob.Grant.Actor, bob.Grant.UID), nil); err != nil {
		t.Fatal(err)
	}
	if err := within(t, denied, "the server denies it"); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("another's end: %v", err)
	}
	if after := w.Rows(); !maps.Equal(before, after) {
		t.Errorf("the records were\n%v and are\n%v", before, after)
	}
	for i, nc := range live {
		if !nc.IsConnected() {
			t.Errorf("the %d. was dropped", i+1)
		}
	}
	unreadableOnTheRail(w, ask(alice, ""), "head."+alice.Grant.Owner+".laptop")
	unreadableOnTheRail(w, ask(alice, ""), "grant."+alice.Grant.Owner+".laptop")
	if got := ask(alice, `{"wait_ms":60000}`)(); got.Outcome != "retired" || got.Evicted != 1 {
		t.Errorf("at last: %+v", got)
	}
	grantedAlone(w, ask(alice, ""), alice)
}

// unreadableOnTheRail garbles a record: what cannot be read says nothing, and nothing
// is begun on a guess.
func unreadableOnTheRail(w *world.World, ask func() said, key string) {
	w.Helper()
	js, err := jetstream.New(owner(w))
	if err != nil {
		w.Fatal(err)
	}
	stream, err := js.Stream(w.Context(), "KV_cotal_authority_main")
	if err != nil {
		w.Fatal(err)
	}
	row := "$KV.cotal_authority_main." + key
	sound, err := stream.GetLastMsgForSubject(w.Context(), row)
	if err != nil {
		w.Fatal(err)
	}
	put := func(value []byte) {
		w.Helper()
		if _, err := js.Publish(w.Context(), row, value); err != nil {
			w.Fatal(err)
		}
	}
	put([]byte("junk"))
	before := w.Rows()
	if got := ask(); got.Error.Reason != messages.Unproved.Reason || got.Error.Changed == nil || *got.Error.Changed {
		w.Errorf("%s cannot be read: %+v", key, got)
	}
	if after := w.Rows(); !maps.Equal(before, after) {
		w.Errorf("the records were\n%v and are\n%v", before, after)
	}
	put(sound.Data)
}

// grantedAlone asks again for the end of who was retired, while a new grant stands that
// nobody has used: it is in nobody's way, and in no danger.
func grantedAlone(w *world.World, ask func() said, former world.Person) {
	w.Helper()
	next := w.Grant("alice", "laptop", "demo.>")
	w.Settle()
	before := w.Rows()
	if got := ask(); got.Outcome != "retired" || !got.Already || got.Evicted != 1 || next.UID == former.Grant.UID {
		w.Errorf("who was retired before, beside a new grant: %+v", got)
	}
	if after := w.Rows(); !maps.Equal(before, after) {
		w.Errorf("the records were\n%v and are\n%v", before, after)
	}
	token, status := w.Exchange("alice", "laptop")
	if status != http.StatusOK {
		w.Fatalf("exchange under the new grant: %d", status)
	}
	w.With(next, token).Connect()
}
