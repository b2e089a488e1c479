package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
)

const ctlInstance = "ctlctlctlctlctlctlctlctl01"

// remote is a controller elsewhere: a process with keys of its own, which has nothing but
// what it was given over HTTP.
type remote struct {
	*jobber
	epoch   uint64
	keys    map[string]string
	receipt string
	asked   int
}

// newRemoteJobber is a space that a controller elsewhere may run jobs in, on behalf of
// alice's actor boss; and alice's key is certified over HTTP.
func newRemoteJobber(t *testing.T, change ...func(*space.Config)) *jobber {
	t.Helper()
	j := newJobber(t, append(change, func(c *space.Config) { c.Public = &space.PublicConfig{Listen: "127.0.0.1:0"} })...)
	for sub, actor := range map[string]string{"alice": "boss", "mallory": "boss"} {
		if status := j.Call("POST", "/v1/grants", map[string]any{"sub": sub, "actor": actor, "scope": []string{"supervise"}}, nil); status != http.StatusCreated {
			t.Fatalf("grant: %d", status)
		}
	}
	key, public := newUser(t)
	status, body := j.post("/v1/runs/bind", j.alice.Token, map[string]any{"key": public})
	var bound struct{ Certificate string }
	if err := json.Unmarshal(body, &bound); err != nil || status != http.StatusOK || bound.Certificate == "" {
		t.Fatalf("bind: %d %s", status, body)
	}
	j.key, j.bound = key, messages.RunCallerBound{Certificate: bound.Certificate}
	return j
}

// post asks the public face, with a proof in the header.
func (j *jobber) post(path, proof string, body any) (int, []byte) {
	status, text, err := j.tryPost(path, proof, body)
	if err != nil {
		j.Fatal(err)
	}
	return status, text
}

func (j *jobber) tryPost(path, proof string, body any) (int, []byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(j.Context(), "POST", j.Space.PublicURL()+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+proof)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return reply.StatusCode, text, err
}

// registers makes a new process the one of the controller's instance.
func (j *jobber) registers(t *testing.T) *remote {
	t.Helper()
	done, err := j.Space.RegisterHostInstance(j.Context(), jobs, ctlInstance, space.ControllerPrincipal(j.ownerOf(), ctlInstance))
	if err != nil {
		t.Fatal(err)
	}
	c := &remote{jobber: j, epoch: done.Instance.Epoch, keys: map[string]string{}}
	for _, kind := range []string{"supervisor", "executor", "server", "recorder", "ledger"} {
		_, c.keys[kind] = newUser(t)
	}
	return c
}

// envelope is what every question of the process has, under an id of its own.
func (c *remote) envelope(more map[string]any) map[string]any {
	c.asked++
	body := map[string]any{"v": 1, "space": "main", "actor": "boss", "endpoint": jobs, "instance": ctlInstance, "epoch": c.epoch,
		"request_id": fmt.Sprintf("question-%d-%020d", c.epoch, c.asked), "keys": c.keys}
	maps.Copy(body, more)
	return body
}

// starts prepares and activates, which gives the receipt.
func (c *remote) starts(t *testing.T) *remote {
	t.Helper()
	proof := c.IDToken("alice")
	if status, body := c.post("/v1/controllers/prepare", proof, c.envelope(nil)); status != http.StatusOK {
		t.Fatalf("prepare: %d %s", status, body)
	}
	status, body := c.post("/v1/controllers/activate", proof, c.envelope(map[string]any{"commands": []string{"start"}}))
	var given struct{ Receipt string }
	if err := json.Unmarshal(body, &given); err != nil || status != http.StatusOK || given.Receipt == "" {
		t.Fatalf("activate: %d %v", status, err)
	}
	c.receipt = given.Receipt
	return c
}

// question is one about a run.
func (c *remote) question(run string, more map[string]any) map[string]any {
	body := c.envelope(more)
	body["receipt"], body["run"] = c.receipt, run
	return body
}

// forwarded is a request as a question has it.
func forwarded(q messages.RunRequest) map[string]any {
	return map[string]any{"subject": q.Subject, "payload": q.Payload, "certificate": q.Certificate, "signature": q.Signature}
}

func (c *remote) admission(run string) map[string]any {
	c.Helper()
	return c.question(run, map[string]any{"request": forwarded(runrequest.Forward(c.signed(runrequest.Start, runrequest.Body{})))})
}

// next is the question for the n-th driver of a run.
func (c *remote) next(t *testing.T, run string, n uint64) (body map[string]any, driver nkeys.KeyPair) {
	t.Helper()
	driver, d := newUser(t)
	_, m := newUser(t)
	return c.question(run, map[string]any{"takeover": fmt.Sprintf("t%d", n), "attempt": n, "driver": d, "mediator": m}), driver
}

func (c *remote) ask(door string, body map[string]any) (int, []byte) {
	c.Helper()
	return c.post("/v1/controllers/runs/"+door, c.IDToken("alice"), body)
}

// asks insists on an answer, and on the same one to the same question.
func (c *remote) asks(t *testing.T, door string, body map[string]any) []byte {
	t.Helper()
	status, first := c.ask(door, body)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", door, status, first)
	}
	if status, again := c.ask(door, body); status != http.StatusOK || !bytes.Equal(again, first) {
		t.Errorf("%s again: %d\n%s, not\n%s", door, status, again, first)
	}
	return first
}

// refused insists on a refusal that gives nothing away.
func (c *remote) refused(t *testing.T, what, door string, want messages.Error, proof string, body map[string]any) {
	t.Helper()
	status, text, err := c.tryPost("/v1/controllers/runs/"+door, proof, body)
	var told struct{ Error struct{ Code, Reason string } }
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil || status != want.Code.HTTPStatus() || told.Error.Reason != want.Reason || bytes.Contains(text, []byte(`"jwt"`)) {
		t.Errorf("%s at %s: %d %s, not %s, %v", what, door, status, told.Error.Reason, want.Reason, err)
	}
}

// drives takes the journal of a run with what an attempt gave, and nothing else.
func (c *remote) drives(t *testing.T, answer []byte, driver nkeys.KeyPair, mode runjournal.Mode) *runjournal.Journal {
	t.Helper()
	var got struct {
		Run, Takeover        string
		Attempt, Epoch, Head uint64
		Credentials          struct {
			Driver struct {
				User, JWT string
				ExpiresAt time.Time `json:"expires_at"`
			}
		}
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	d := got.Credentials.Driver
	nc := c.as(driver, messages.RunCredential{Key: d.User, JWT: d.JWT, Expires: d.ExpiresAt})
	from, err := runjournal.Deliver(nc, "_INBOX_"+d.User, got.Head)
	if err != nil {
		t.Fatal(err)
	}
	to, err := runjournal.Over(nc, "main", got.Run)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := runjournal.Take(t.Context(), from, to, runjournal.Taking{Mode: mode, Known: got.Head,
		Lease: runjournal.Lease{Holder: got.Takeover, Token: got.Attempt, Epoch: got.Epoch}})
	if err != nil {
		t.Fatal(err)
	}
	return journal
}

// A controller elsewhere, with keys of its own and its receipt, admits a run that alice
// signed, drives it, and revokes it; whoever is not the registered process gets nothing.
func TestAControllerElsewhereRunsJobs(t *testing.T) {
	t.Parallel()
	j := newRemoteJobber(t)
	c := j.registers(t).starts(t)
	run := j.newRun()
	c.asks(t, "admit", c.admission(run))
	first, driver := c.next(t, run, 1)
	journal := c.drives(t, c.asks(t, "attempt", first), driver, runjournal.New)
	if _, err := journal.Append(t.Context(), map[string]int{"step": 1}); err != nil {
		t.Fatal(err)
	}
	_, reader := newUser(t)
	if status, body := c.ask("operate", c.question(run, map[string]any{"key": reader})); status != http.StatusOK || !bytes.Contains(body, []byte(`"jwt"`)) {
		t.Errorf("a reader: %d", status)
	}
	c.isRefusedWhatIsNotNext(t, run, c.over(t), first)
	c.isRefusedWithoutItsReceipt(t, run)

	before := j.rowsOfRuns(t)
	next := j.registers(t)
	j.refusedEverywhere(t, "a superseded process", c, run, messages.InstanceSuperseded)
	next.receipt = c.receipt
	j.refusedEverywhere(t, "its successor with its receipt", next, run, messages.ReceiptInvalid)
	if after := j.rowsOfRuns(t); !slices.Equal(after, before) {
		t.Errorf("what was refused has written: %q, before %q", after, before)
	}
	next.starts(t)
	second, driver := next.next(t, run, 2)
	taken := next.drives(t, next.asks(t, "attempt", second), driver, runjournal.Existing)
	if h := taken.History(); len(h.Records) != 3 || string(h.Records[1].Entry) != `{"step":1}` {
		t.Errorf("it replayed %+v", h.Records)
	}
	revoked := next.asks(t, "revoke", next.question(run, map[string]any{"reason": "enough"}))
	if !bytes.Contains(revoked, []byte(`"by":"`+j.ownerOf()+`.boss","reason":"enough"`)) {
		t.Errorf("revoked: %s", revoked)
	}
	third, _ := next.next(t, run, 3)
	next.refused(t, "a run that was revoked", "attempt", messages.RunRevoked, j.IDToken("alice"), third)
}

// rowsOfRuns are the keys of all that is recorded of runs, sorted.
func (j *jobber) rowsOfRuns(t *testing.T) []string {
	t.Helper()
	js, err := jetstream.New(j.Owner("ctrl"))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "KV_cotal_records_main")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for subject := range info.State.Subjects {
		key := strings.TrimPrefix(subject, "$KV.cotal_records_main.")
		if family, _, _ := strings.Cut(key, "."); slices.Contains([]string{"admission", "request", "attempt", "revoked"}, family) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		t.Error("nothing is recorded of any run")
	}
	slices.Sort(keys)
	return keys
}

// over is a run whose journal says that it has ended.
func (c *remote) over(t *testing.T) string {
	t.Helper()
	run := c.newRun()
	c.asks(t, "admit", c.admission(run))
	ask, driver := c.next(t, run, 1)
	journal := c.drives(t, c.asks(t, "attempt", ask), driver, runjournal.New)
	if _, err := journal.Append(t.Context(), runjournal.NewEnded("completed")); err != nil {
		t.Fatal(err)
	}
	return run
}

// isRefusedWhatIsNotNext asks for attempts that are not the next one of the run, or are
// another driver's.
func (c *remote) isRefusedWhatIsNotNext(t *testing.T, run, over string, first map[string]any) {
	t.Helper()
	proof, others := c.IDToken("alice"), c.started() // by the host's own instance
	for what, q := range map[string]struct {
		run    string
		n      uint64
		change map[string]any
		want   messages.Error
	}{
		"another takeover":           {run, 1, map[string]any{"driver": first["driver"], "mediator": first["mediator"], "request_id": first["request_id"], "takeover": "other"}, messages.RunAttemptTaken},
		"another driver":             {run, 1, map[string]any{"request_id": first["request_id"]}, messages.RunAttemptTaken},
		"an old token":               {run, 1, nil, messages.RunAttemptTaken},
		"a token too far":            {run, 3, nil, messages.RunAttemptTaken},
		"a run that nobody admitted": {c.newRun(), 1, nil, messages.RunNotAdmitted},
		"another instance's run":     {others, 1, nil, messages.RunNotAdmitted},
		"a run that has ended":       {over, 2, nil, messages.RunEnded},
		"a driver with its own key":  {run, 2, map[string]any{"driver": c.keys["executor"]}, messages.Malformed},
	} {
		body, _ := c.next(t, q.run, q.n)
		maps.Copy(body, q.change)
		c.refused(t, what, "attempt", q.want, proof, body)
	}
	c.refused(t, "another instance's run", "revoke", messages.RunNotAdmitted, proof, c.question(others, nil))
	c.refused(t, "a run of another caller", "admit", messages.RunConflict, proof, c.admission(others))
}

// isRefusedWithoutItsReceipt asks as whoever is not the process, or for whom it is not run.
func (c *remote) isRefusedWithoutItsReceipt(t *testing.T, run string) {
	t.Helper()
	forged := *c
	forged.receipt = strings.Repeat("0", 64)
	c.refusedEverywhere(t, "a forged receipt", &forged, run, messages.ReceiptInvalid)
	other := *c
	other.keys = maps.Clone(c.keys)
	_, other.keys["server"] = newUser(t)
	c.refusedEverywhere(t, "another program", &other, run, messages.ReceiptInvalid)
	newer := *c
	newer.epoch++
	c.refusedEverywhere(t, "a process that never registered", &newer, run, messages.InstanceSuperseded)
	for door, body := range c.questions(t, run) {
		c.refused(t, "another owner", door, messages.InstanceForeign, c.IDToken("mallory"), body)
		delete(body, "receipt")
		c.refused(t, "no receipt", door, messages.Malformed, c.IDToken("alice"), body)
	}
}

// questions are one for each door.
func (c *remote) questions(t *testing.T, run string) map[string]map[string]any {
	t.Helper()
	attempt, _ := c.next(t, run, 2)
	_, key := newUser(t)
	return map[string]map[string]any{
		"admit": c.admission(c.newRun()), "attempt": attempt, "operate": c.question(run, map[string]any{"key": key}),
		"revoke": c.question(run, map[string]any{"reason": "x"}),
	}
}

func (j *jobber) refusedEverywhere(t *testing.T, what string, c *remote, run string, want messages.Error) {
	t.Helper()
	for door, body := range c.questions(t, run) {
		c.refused(t, what, door, want, j.IDToken("alice"), body)
	}
}

// Two controllers with one receipt ask at the same moment: there is one admission, which
// both hear, and one driver; the other one's question is a conflict.
func TestTwoControllersElsewhereRace(t *testing.T) {
	t.Parallel()
	j := newRemoteJobber(t)
	c := j.registers(t).starts(t)
	proof := j.IDToken("alice")
	both := func(door string, bodies [2]map[string]any) (statuses [2]int, texts [2][]byte) {
		var all sync.WaitGroup
		for i := range bodies {
			all.Go(func() {
				var err error
				if statuses[i], texts[i], err = j.tryPost("/v1/controllers/runs/"+door, proof, bodies[i]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return statuses, texts
	}
	for range 5 {
		run := j.newRun()
		admit := c.admission(run)
		if statuses, texts := both("admit", [2]map[string]any{admit, admit}); statuses != [2]int{200, 200} || !bytes.Equal(texts[0], texts[1]) {
			t.Fatalf("admitted: %v\n%s\n%s", statuses, texts[0], texts[1])
		}
		var asks [2]map[string]any
		for i := range asks {
			asks[i], _ = c.next(t, run, 1)
		}
		statuses, texts := both("attempt", asks)
		won := 0
		if statuses[1] == http.StatusOK {
			won = 1
		}
		if statuses[won] != http.StatusOK || statuses[1-won] != http.StatusConflict || !bytes.Contains(texts[1-won], []byte(`"`+messages.RunAttemptTaken.Reason+`"`)) ||
			bytes.Contains(texts[1-won], []byte(`"jwt"`)) {
			t.Fatalf("attempted: %v\n%s", statuses, texts[1-won])
		}
		if again := c.asks(t, "attempt", asks[won]); !bytes.Equal(again, texts[won]) {
			t.Errorf("the same question has another answer")
		}
		c.refused(t, "the one that lost", "attempt", messages.RunAttemptTaken, proof, asks[1-won])
	}
}

// A process that is superseded in the middle of its question gets nothing, however far
// that was: also when everything is decided, and signed.
func TestAControllerElsewhereIsSupersededInTheMiddle(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	j := newRemoteJobber(t, inject.Into)
	c := j.registers(t).starts(t)
	for door, checks := range map[string][]int{"admit": {3}, "attempt": {1, 2, 3, 4}, "operate": {4}, "revoke": {3}} {
		for _, n := range checks {
			run := j.newRun()
			c.asks(t, "admit", c.admission(run))
			body := c.questions(t, run)[door]
			if door == "attempt" {
				body["attempt"] = 1
			}
			held := inject.Arm(faults.Fault{Actor: "plane/issuer", Harm: faults.Hold, Message: messages.CheckController{}, Nth: n})
			told := make(chan struct{})
			go func() {
				defer close(told)
				c.refused(t, fmt.Sprintf("superseded before check %d", n), door, messages.InstanceSuperseded, j.IDToken("alice"), body)
			}()
			within(t, held.Struck(), "a check")
			next := j.registers(t)
			held.Disarm()
			within(t, told, "the answer")
			c = next.starts(t)
		}
	}
}
