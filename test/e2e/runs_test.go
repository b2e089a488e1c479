package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

const (
	jobs         = "jobs"
	jobsInstance = "jobsjobsjobsjobsjobsjobs01"
)

var admissions = flag.Int("admissions", 40, "how many runs are admitted one after the other")

// jobber is a space with a service that runs the jobs of alice.
type jobber struct {
	*world.World
	alice world.Person
	key   nkeys.KeyPair
	bound messages.RunCallerBound
	runs  int
}

func newJobber(t *testing.T, change ...func(*space.Config)) *jobber {
	t.Helper()
	j := &jobber{World: world.Open(t, change...)}
	owner := j.Grant("alice", "setup", "setup.>").Owner
	j.alice = j.Person("alice", "laptop", "demo.>", j.subject(owner, "", "*").Pattern())
	var err error
	if _, err = j.Space.RegisterHostInstance(j.Context(), jobs, jobsInstance, j.controller().Principal); err != nil {
		t.Fatal(err)
	}
	j.key, _ = newUser(t)
	public, err := j.key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	j.bound, err = j.Space.BindRunCaller(messages.BindRunCaller{Bearer: messages.NewSecret(j.alice.Token), Key: public})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func newUser(t *testing.T) (nkeys.KeyPair, string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return pair, public
}

func (j *jobber) controller() messages.RunController {
	return messages.RunController{Endpoint: jobs, Instance: jobsInstance, Principal: messages.Principal{Owner: j.ownerOf(), Actor: "runner"}}
}

func (j *jobber) ownerOf() string { return j.alice.Grant.Owner }

func (j *jobber) subject(owner, uid, command string) runrequest.Subject {
	return runrequest.Subject{Endpoint: jobs, Instance: runrequest.Any, Command: command, UID: uid, Nonce: runrequest.NewNonce(),
		Caller: messages.Principal{Owner: owner, Actor: "laptop"}}
}

// signed is a request of alice's as it goes over the wire.
func (j *jobber) signed(command string, body runrequest.Body) *nats.Msg {
	j.Helper()
	m, err := runrequest.Sign(j.key, j.bound.Certificate, "main", j.subject(j.ownerOf(), j.alice.Grant.UID, command), body)
	if err != nil {
		j.Fatal(err)
	}
	return m
}

func (j *jobber) newRun() string {
	j.runs++
	return fmt.Sprintf("run-%032x", j.runs)
}

// started is a run that was admitted.
func (j *jobber) started() string {
	j.Helper()
	run := j.newRun()
	ask := messages.AdmitRun{Controller: j.controller(), Run: run, Request: runrequest.Forward(j.signed(runrequest.Start, runrequest.Body{}))}
	if _, err := j.Space.AdmitRun(j.Context(), ask); err != nil {
		j.Fatal(err)
	}
	return run
}

// attempt is a question for the n-th driver, and the keys that it is for.
func (j *jobber) attempt(t *testing.T, run string, n uint64) (ask messages.AttemptRun, driver, mediator nkeys.KeyPair) {
	driver, d := newUser(t)
	mediator, m := newUser(t)
	return messages.AttemptRun{Controller: j.controller(), Run: run, Request: fmt.Sprintf("question-%020d", n), Takeover: fmt.Sprintf("t%d", n),
		Attempt: n, Driver: d, Mediator: m}, driver, mediator
}

// as connects as whom a credential is for.
func (j *jobber) as(key nkeys.KeyPair, c messages.RunCredential) *nats.Conn {
	j.Helper()
	nc, err := nats.Connect(j.Config.NATSURL, nats.UserJWT(func() (string, error) { return c.JWT, nil }, key.Sign),
		nats.CustomInboxPrefix("_INBOX_"+c.Key), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		j.Fatal(err)
	}
	j.Cleanup(nc.Close)
	return nc
}

// drive takes the journal of a run as its n-th driver does, with nothing but what it was
// given.
func (j *jobber) drive(t *testing.T, run string, n uint64, mode runjournal.Mode) (*runjournal.Journal, *nats.Conn, messages.RunAttempted, nkeys.KeyPair) {
	t.Helper()
	ask, driver, mediator := j.attempt(t, run, n)
	got, err := j.Space.AttemptRun(j.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	nc := j.as(driver, got.Driver)
	from, err := runjournal.Deliver(nc, "_INBOX_"+got.Driver.Key, got.Attempt.Head)
	if err != nil {
		t.Fatal(err)
	}
	to, err := runjournal.Over(nc, "main", run)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := runjournal.Take(t.Context(), from, to, runjournal.Taking{Mode: mode, Known: got.Attempt.Head,
		Lease: runjournal.Lease{Holder: ask.Takeover, Token: got.Attempt.Attempt, Epoch: got.Attempt.Epoch}})
	if err != nil {
		t.Fatal(err)
	}
	return journal, nc, got, mediator
}

// A run from its start to its end: it is admitted once, driven by one and then by another,
// acts under its ceiling, is answered, and revoked; and no connection of any of it stays.
func TestARun(t *testing.T) {
	t.Parallel()
	j := newJobber(t)
	request := j.signed(runrequest.Start, runrequest.Body{Input: []byte(`{"job":1}`)})
	arrived := j.arrives(request)
	run := j.newRun()
	ask := messages.AdmitRun{Controller: j.controller(), Run: run, Request: runrequest.Forward(arrived)}
	first, err := j.Space.AdmitRun(j.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := j.Space.AdmitRun(j.Context(), ask); err != nil || again.Revision != first.Revision {
		t.Errorf("the same question: %+v, %v", again, err)
	}
	ask.Run = j.newRun()
	if _, err := j.Space.AdmitRun(j.Context(), ask); !errors.Is(err, messages.RunRequestUsed) {
		t.Errorf("another run: %v", err)
	}

	one, oneConn, got, mediator := j.drive(t, run, 1, runjournal.New)
	const token = "a-pause-token-of-28-character"
	for _, entry := range []any{map[string]int{"step": 1}, runjournal.NewPause("approve", token)} {
		if _, err := one.Append(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	j.actsUnderItsCeiling(t, mediator, got.Mediator)
	j.isConfined(t, oneConn, run)
	j.isAnswered(t, run, token, oneConn)

	two, _, _, _ := j.drive(t, run, 2, runjournal.Existing)
	if h := two.History(); len(h.Records) != 4 || string(h.Records[1].Entry) != `{"step":1}` {
		t.Errorf("it replayed %+v", h.Records)
	}
	if _, err := one.Append(t.Context(), map[string]int{"step": 2}); !errors.Is(err, messages.JournalSuperseded) {
		t.Errorf("the former driver: %v", err)
	}
	if _, err := two.Append(t.Context(), runjournal.NewSettled("approve", token, true)); err != nil {
		t.Fatal(err)
	}
	j.isRevoked(t, run)
	j.leavesNothing(t)
}

// arrives publishes a request as alice, and returns it as the service gets it.
func (j *jobber) arrives(request *nats.Msg) *nats.Msg {
	j.Helper()
	service := j.Owner("data")
	sub, err := service.SubscribeSync("run.jobs.>")
	if err == nil {
		err = service.Flush()
	}
	if err == nil {
		err = j.alice.Connect().PublishMsg(request)
	}
	if err != nil {
		j.Fatal(err)
	}
	m, err := sub.NextMsg(world.Patience)
	if err != nil {
		j.Fatal(err)
	}
	return m
}

// may reports whether a server lets a connection publish to a subject.
func may(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	if err := nc.Publish(subject, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(world.Patience); err != nil {
		t.Fatal(err)
	}
	err := nc.LastError()
	return err == nil || !strings.HasSuffix(err.Error(), `Publish to "`+subject+`"`)
}

func (j *jobber) actsUnderItsCeiling(t *testing.T, key nkeys.KeyPair, c messages.RunCredential) {
	t.Helper()
	nc := j.as(key, c)
	for subject, want := range map[string]bool{
		"demo.x": true, "other.x": false, "setup.x": false, "$JS.API.INFO": false,
		runjournal.Subject("main", "run-00000000000000000000000000000001"): false,
	} {
		if may(t, nc, subject) != want {
			t.Errorf("the mediator may publish %s is %v", subject, !want)
		}
	}
}

// isConfined checks that a driver can do nothing but keep its own journal.
func (j *jobber) isConfined(t *testing.T, nc *nats.Conn, run string) {
	t.Helper()
	for _, subject := range []string{
		"demo.x", runjournal.Subject("main", "run-ffffffffffffffffffffffffffffffff"), runjournal.Subject("main", run) + ".x",
		"$JS.API.STREAM.MSG.GET.cotal_runs_main", "$JS.API.STREAM.INFO.cotal_runs_main", "$JS.API.CONSUMER.CREATE.cotal_runs_main.x." + runjournal.Subject("main", run),
		"$JS.API.CONSUMER.MSG.NEXT.cotal_runs_main.x", "$JS.API.STREAM.PURGE.cotal_runs_main", "$JS.API.INFO", "cotal.main.answer." + run + ".x",
	} {
		if may(t, nc, subject) {
			t.Errorf("the driver may publish %s", subject)
		}
	}
}

// isAnswered has alice answer a pause, with what only the journal tells.
func (j *jobber) isAnswered(t *testing.T, run, token string, driver *nats.Conn) {
	t.Helper()
	heard, err := driver.SubscribeSync("cotal.main.answer." + run + ".*")
	if err == nil {
		err = driver.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	key, public := newUser(t)
	ask := messages.OperateRun{Controller: j.controller(), Run: run, Key: public, Step: "approve"}
	if _, err := j.Space.OperateRun(j.Context(), ask); !errors.Is(err, messages.RunUnwitnessed) {
		t.Errorf("an answer that nobody gives: %v", err)
	}
	ask.Served = runrequest.Forward(j.signed(runrequest.Answer, runrequest.Body{Run: run, Step: "approve"}))
	got, err := j.Space.OperateRun(j.Context(), ask)
	if err != nil || got.Subject != "cotal.main.answer."+run+"."+token || time.Until(got.Credential.Expires) > time.Minute {
		t.Fatalf("%+v, %v", got.Subject, err)
	}
	nc := j.as(key, got.Credential)
	if may(t, nc, got.Subject+"x") || may(t, nc, "demo.x") || !may(t, nc, got.Subject) {
		t.Error("the operator may do something else than answer")
	}
	if m, err := heard.NextMsg(world.Patience); err != nil || m.Subject != got.Subject {
		t.Errorf("the driver hears %v, %v", m, err)
	}
	_, reader := newUser(t)
	if got, err := j.Space.OperateRun(j.Context(), messages.OperateRun{Controller: j.controller(), Run: run, Key: reader}); err != nil || got.Subject != "" {
		t.Errorf("a reader: %+v, %v", got.Subject, err)
	}
}

func (j *jobber) isRevoked(t *testing.T, run string) {
	t.Helper()
	var first, second, shown map[string]any
	path := "/v1/runs/" + jobs + "/" + run
	if status := j.Call("POST", path+"/revoke", map[string]any{"reason": "enough", "by": "somebody"}, &first); status != 400 {
		t.Errorf("who says who revokes: %d", status)
	}
	for _, answer := range []*map[string]any{&first, &second} {
		*answer = nil
		if status := j.Call("POST", path+"/revoke", map[string]any{"reason": "enough"}, answer); status != 200 {
			t.Fatalf("revoke: %d %v", status, *answer)
		}
	}
	if first["at"] != second["at"] || first["by"] != "operator" {
		t.Errorf("%v, then %v", first, second)
	}
	if status := j.Call("GET", path, nil, &shown); status != 200 || len(shown["attempts"].([]any)) != 2 || shown["revoked"] == nil {
		t.Errorf("%d %v", status, shown)
	}
	var all struct{ Runs []map[string]any }
	if status := j.Call("GET", "/v1/runs", nil, &all); status != 200 || len(all.Runs) != 1 {
		t.Errorf("%d %v", status, all)
	}
	ask, _, _ := j.attempt(t, run, 3)
	if _, err := j.Space.AttemptRun(j.Context(), ask); !errors.Is(err, messages.RunRevoked) {
		t.Errorf("an attempt: %v", err)
	}
}

// leavesNothing checks that every short-lived connection of runs was in custody, under its
// label, and has ended.
func (j *jobber) leavesNothing(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range j.Space.Connections() {
		if strings.HasPrefix(c.Label, "cotal:run-") {
			seen[strings.SplitN(c.Label, ":", 3)[1]] = true
			if !c.Ended {
				t.Errorf("%s has not ended", c.Label)
			}
		}
	}
	j.Poll("the server to see the ends", func() bool {
		connz, err := j.Broker.Connz(nil)
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(connz.Conns, func(c *server.ConnInfo) bool {
			return strings.Contains(c.Name, "run-admitter") || strings.Contains(c.Name, "run-attempt-reader")
		})
	})
	for _, label := range []string{"run-admitter", "run-attempt-reader"} {
		if !seen[label] {
			t.Errorf("%s was never in custody: %v", label, seen)
		}
	}
}

// Two controllers at once: one admission, and one driver.
func TestTwoControllersRaceForARun(t *testing.T) {
	t.Parallel()
	j := newJobber(t)
	for range 5 {
		run := j.newRun()
		request := runrequest.Forward(j.signed(runrequest.Start, runrequest.Body{}))
		var mu sync.Mutex
		revisions := map[uint64]int{}
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				got, err := j.Space.AdmitRun(j.Context(), messages.AdmitRun{Controller: j.controller(), Run: run, Request: request})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				revisions[got.Revision]++
			})
		}
		all.Wait()
		if len(revisions) != 1 {
			t.Errorf("admitted at %v", revisions)
		}
		issued, taken := 0, 0
		for i := range 2 {
			ask, _, _ := j.attempt(t, run, 1)
			ask.Request = fmt.Sprintf("question-%d-of-two-controllers", i)
			all.Go(func() {
				got, err := j.Space.AttemptRun(j.Context(), ask)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					issued++
					if again, err := j.Space.AttemptRun(j.Context(), ask); err != nil || again != got {
						t.Errorf("the same question has another answer: %v", err)
					}
				case errors.Is(err, messages.RunAttemptTaken):
					taken++
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if issued != 1 || taken != 1 {
			t.Errorf("%d are issued, %d refused", issued, taken)
		}
	}
}

// Admissions leave no connection, subscription or consumer behind. A soak: -admissions 2000.
func TestAdmissionsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	j := newJobber(t, func(c *space.Config) { c.ObserveRequests = true })
	j.started()
	owner := j.Owner("data")
	count := func() [3]int {
		connz, err := j.Broker.Connz(nil)
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(owner)
		if err != nil {
			t.Fatal(err)
		}
		consumers := 0
		for s := range js.ListStreams(j.Context()).Info() {
			consumers += s.State.Consumers
		}
		return [3]int{connz.NumConns, int(j.Broker.NumSubscriptions()), consumers}
	}
	// The control rail listens by itself, once the plane is held: describe is its last subject.
	j.Poll("the control rail to listen", func() bool {
		connz, err := j.Broker.Connz(&server.ConnzOptions{Subscriptions: true})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(connz.Conns, func(c *server.ConnInfo) bool {
			return slices.ContainsFunc(c.Subs, func(subject string) bool { return strings.HasSuffix(subject, ".describe") })
		})
	})
	before := count()
	began := time.Now()
	for range *admissions {
		j.started()
	}
	t.Logf("%d admissions in %s", *admissions, time.Since(began))
	j.Poll("nothing to be left", func() bool {
		after := count()
		for i := range after {
			if after[i] > before[i] {
				return false
			}
		}
		return true
	})
}

// A request that nobody signed is witnessed by whoever saw it, once it arrives there.
func TestAnUnsignedRequestIsObserved(t *testing.T) {
	t.Parallel()
	j := newJobber(t, func(c *space.Config) { c.ObserveRequests = true })
	payload, err := runrequest.Body{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	request := messages.RunRequest{Subject: j.subject(j.ownerOf(), j.alice.Grant.UID, runrequest.Start).String(), Payload: payload}
	ask := messages.AdmitRun{Controller: j.controller(), Run: j.newRun(), Request: request}
	if _, err := j.Space.AdmitRun(j.Context(), ask); !errors.Is(err, messages.RunUnwitnessed) {
		t.Errorf("one that was never published: %v", err)
	}
	alice := j.alice.Connect()
	told := make(chan error, 1)
	var got messages.RunAdmitted
	go func() {
		var err error
		got, err = j.Space.AdmitRun(j.Context(), ask)
		told <- err
	}()
	if err := alice.Publish(request.Subject, request.Payload); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil || got.Admission.Witness != messages.WitnessObservation {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, _, err := j.Space.Kill(j.Context(), "run-observer", "panic"); err != nil {
		t.Fatal(err)
	}
	j.AwaitLife("run-observer", 2)
	if again, err := j.Space.AdmitRun(j.Context(), ask); err != nil || again.Revision != got.Revision {
		t.Errorf("after all that was seen is lost: %+v, %v", again, err)
	}
}
