package broker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

const (
	aRun    = "run-0000000000000000000000000000000a"
	bRun    = "run-0000000000000000000000000000000b"
	runLogs = "cotal_runs_acme"
	asked1  = "1111111111111111111111111111111111111111111111111111111111111111"
	asked2  = "2222222222222222222222222222222222222222222222222222222222222222"
)

func userKey(t *testing.T) (nkeys.KeyPair, string) {
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

// runTable are the roles for one run each.
func runTable(key string) []grants {
	read := []string{"$JS.API.STREAM.INFO." + records, "$JS.API.STREAM.MSG.GET." + records, recorded + "beat." + instance}
	others := slices.Concat(makingConsumers(records, "x"), altering(records), []string{
		recorded + "admission.svc." + bRun, recorded + "admission.other." + aRun, recorded + "request.svc." + asked2, recorded + "revoked.svc." + bRun,
		recorded + "attempt.svc." + aRun + ".2", recorded + "attempt.svc." + bRun + ".1", recorded + "beat." + another, rows + "inst.svc." + instance,
		rows + "grant.u_x.laptop", "$JS.API.STREAM.MSG.GET." + stream, "$JS.API.STREAM.CREATE." + records, "$JS.API.INFO",
	})
	admission, request := recorded+"admission.svc."+aRun, recorded+"request.svc."+asked1
	revoked, attempt := recorded+"revoked.svc."+aRun, recorded+"attempt.svc."+aRun+".1"
	logs := []string{"$JS.API.STREAM.CREATE." + runLogs, "$JS.API.STREAM.INFO." + runLogs, "$JS.API.STREAM.MSG.GET." + runLogs}
	noLogs := slices.Concat(altering(runLogs), []string{runjournal.Subject("acme", aRun), "$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.MSG.GET.x", "demo.x", "$JS.API.INFO"})
	never := []string{runjournal.Subject("acme", aRun), "cotal.acme.>", ">"}
	deliver := "$JS.API.CONSUMER.CREATE." + runLogs + "." + broker.ReplayConsumer(aRun, key) + "."
	const label = "cotal:run-admitter:acme:svc"
	return []grants{
		{role: broker.RunAdmitter(instance, "svc", aRun, asked1), label: label, publishes: append(read, admission, request), neverPublishes: append(others, revoked, attempt), never: never},
		{role: broker.RunRevoker(instance, "svc", aRun), label: label, publishes: append(read, revoked), neverPublishes: append(others, admission, request, attempt), never: never},
		{role: broker.RunReserver(instance, "svc", aRun, 1, ""), label: label, publishes: append(read, attempt), neverPublishes: append(others, admission, request, revoked), never: never},
		{role: broker.RunReserver(instance, "svc", aRun, 1, asked1), label: label, publishes: append(read, attempt, request), neverPublishes: append(others, admission, revoked), never: never},
		{role: broker.RunSpender(instance, "svc", aRun, asked1), label: label, publishes: append(read, request), neverPublishes: append(others, admission, attempt, revoked), never: never},
		{role: broker.RunSpender(instance, "svc", aRun, ""), label: label, publishes: read, neverPublishes: append(others, admission, attempt, revoked, request), never: never},
		{role: broker.RunReader(instance), label: "cotal:run-admitter:acme", publishes: read, neverPublishes: append(others, admission, attempt, revoked, request), never: never},
		{role: broker.RunAttemptReader(), label: "cotal:run-attempt-reader:acme", publishes: logs, never: never,
			neverPublishes: slices.Concat(noLogs, makingConsumers(runLogs, "x"), []string{deliver + runjournal.Subject("acme", aRun)})},
		{role: broker.RunReplayer(aRun, key), label: "cotal:run-attempt-reader:acme", publishes: append(logs, deliver+runjournal.Subject("acme", aRun)), never: never,
			neverPublishes: slices.Concat(noLogs, makingConsumers(runLogs, "x"), []string{deliver + runjournal.Subject("acme", bRun),
				"$JS.API.CONSUMER.CREATE." + runLogs + "." + broker.ReplayConsumer(bRun, key) + "." + runjournal.Subject("acme", aRun)})},
		{role: broker.RunObserver(), label: "cotal:run-observer:acme", subscribes: []string{broker.RequestPattern}, neverPublishes: append(noLogs, "run.a.b.start.o.a.u.n"),
			never: []string{"run.>", ">", "demo.>", "cotal.acme.>"}},
	}
}

func TestEveryRoleForRunsMayExactlyWhatItsTableSays(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	d := dialer(t, space)
	_, key := userKey(t)
	for _, g := range runTable(key) {
		c := dial(t, d, g.role)
		if c.Label() != g.label {
			t.Errorf("its label is %s", c.Label())
		}
		check(t, c.NATS(), g, "_INBOX_"+c.ID()+".x")
	}
}

// hearsNoMore has somebody subscribe wider than `job.*`: the server lets him, and delivers
// what `job.*` means.
func hearsNoMore(t *testing.T, nc, everything *nats.Conn) {
	t.Helper()
	sub, err := nc.SubscribeSync("job.>")
	if err == nil {
		err = nc.Flush()
	}
	for _, subject := range []string{"job.x.y", "job.x"} {
		if err == nil {
			err = everything.Publish(subject, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(longEnough); err != nil || m.Subject != "job.x" {
		t.Errorf("a mediator hears %v, %v", m, err)
	}
}

func check(t *testing.T, nc *nats.Conn, g grants, inbox string) {
	t.Helper()
	for want, list := range map[bool][]string{true: g.publishes, false: append(g.neverPublishes, nobodyPublishes...)} {
		for _, subject := range list {
			if strings.HasPrefix(subject, "$SYS.") && !strings.Contains(g.label, "admitter") {
				continue // in DATA the account's own mapping keeps these from the system, whatever a user may
			}
			if mayPublish(t, nc, subject) != want {
				t.Errorf("%s: publish %s is %v", g.label, subject, !want)
			}
		}
	}
	for want, list := range map[bool][]string{true: append(g.subscribes, inbox), false: append(g.never, nobodySubscribes...)} {
		for _, subject := range list {
			if maySubscribe(t, nc, subject) != want {
				t.Errorf("%s: subscribe %s is %v", g.label, subject, !want)
			}
		}
	}
}

// What would be more than one token opens nothing.
func TestNoRoleForWhatIsNoRun(t *testing.T) {
	d := dialer(t, natsdtest.NewSpace(t, "acme"))
	for _, role := range []broker.Role{
		broker.RunAdmitter(instance, "svc", "run.*", asked1), broker.RunAdmitter(instance, "svc", aRun, ">"), broker.RunAdmitter(instance, "*", aRun, asked1),
		broker.RunRevoker(instance, "svc", ""), broker.RunReserver(instance, "svc", "*", 1, ""), broker.RunReplayer("*", "U"),
	} {
		if c, err := d.Dial(t.Context(), role, newCustody(t).keep); err == nil {
			t.Errorf("%s opens", c.Label())
		}
	}
}

// The users of a run may do what they are for in DATA; the journal is delivered to its
// driver, who asks for nothing.
func TestTheUsersOfARun(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	everything := natsdtest.Connect(t, space.URL(), space.Material, trust.DATA, natsdtest.Everything())
	js, err := jetstream.New(everything)
	if err != nil {
		t.Fatal(err)
	}
	if err := runjournal.OpenStream(t.Context(), js, "acme", 1); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	as := func(mint func(broker.RunUser) (string, error)) (*nats.Conn, string) {
		t.Helper()
		pair, public := userKey(t)
		u := broker.RunUser{Run: aRun, Key: public, Issued: now, Expires: now.Add(time.Minute)}
		token, err := mint(u)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := mint(u); err != nil || again != token {
			t.Errorf("the same user is signed differently: %v", err)
		}
		nc, err := nats.Connect(space.URL(), nats.UserJWT(func() (string, error) { return token, nil }, pair.Sign), nats.CustomInboxPrefix("_INBOX_"+public),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc, "_INBOX_" + public + ".x"
	}
	own, other := runjournal.Subject("acme", aRun), runjournal.Subject("acme", bRun)
	reads := slices.Concat(altering(runLogs), makingConsumers(runLogs, "x"), []string{"$JS.API.STREAM.MSG.GET." + runLogs, "$JS.API.STREAM.INFO." + runLogs, "$JS.API.INFO"})
	answer, amend := broker.AnswerSubject("acme", aRun, "t", false), broker.AnswerSubject("acme", aRun, "t", true)

	driver, inbox := as(func(u broker.RunUser) (string, error) { return broker.MintRunDriver(space.Material, u) })
	check(t, driver, grants{label: "driver", publishes: []string{own}, subscribes: []string{answer, amend, broker.AnswerSubject("acme", aRun, "*", false)},
		neverPublishes: append(reads, other, "demo.x", answer), never: []string{own, "demo.>", broker.AnswerSubject("acme", bRun, "*", false), "cotal.acme.answer.>"}}, inbox)

	ceiling := messages.RunAdmission{Publish: []string{"demo.a", "job.*"}, Subscribe: []string{"demo.>", "job.*"}}
	mediator, inbox := as(func(u broker.RunUser) (string, error) { return broker.MintRunMediator(space.Material, u, ceiling) })
	check(t, mediator, grants{label: "mediator", publishes: []string{"demo.a", "job.x"}, subscribes: []string{"demo.x.y", "job.x"},
		neverPublishes: append(reads, own, "demo.b", "job.x.y"), never: []string{own, "other.x", "job.x.y", ">"}}, inbox)

	hearsNoMore(t, mediator, everything)

	nothing, inbox := as(func(u broker.RunUser) (string, error) {
		return broker.MintRunMediator(space.Material, u, messages.RunAdmission{})
	})
	check(t, nothing, grants{label: "mediator of nothing", neverPublishes: append(reads, own, "demo.a"), never: []string{own, "demo.>", ">"}}, inbox)

	operator, inbox := as(func(u broker.RunUser) (string, error) { return broker.MintRunOperator(space.Material, u, answer) })
	check(t, operator, grants{label: "operator", publishes: []string{answer}, neverPublishes: append(reads, amend, own, "demo.a"), never: []string{answer, own, ">"}}, inbox)

	if _, err := broker.MintRunMediator(space.Material, broker.RunUser{}, messages.RunAdmission{Publish: []string{"$JS.API.>"}}); err == nil {
		t.Error("a ceiling that no grant can have is signed")
	}
}
