package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/messages"
)

// RunAdmitter is `run-admitter`: it admits one run that one request started. request is
// the request's id; instance names this process, whose beat proves the leader. Like all
// roles for runs it ends with its one question.
func RunAdmitter(instance, endpoint, run, request string) Role {
	return runRecords(instance, endpoint, []string{run, request}, "{recorded}.admission.{endpoint}."+run, "{recorded}.request.{endpoint}."+request)
}

// RunRevoker is `run-admitter` for the revocation of one run.
func RunRevoker(instance, endpoint, run string) Role {
	return runRecords(instance, endpoint, []string{run}, "{recorded}.revoked.{endpoint}."+run)
}

// RunReserver is `run-admitter` for one attempt at one run; request is the id of the
// request to resume it, empty for none.
func RunReserver(instance, endpoint, run string, attempt uint64, request string) Role {
	rows := []string{"{recorded}.attempt.{endpoint}." + run + "." + strconv.FormatUint(attempt, 10)}
	tokens := []string{run}
	if request != "" {
		rows, tokens = append(rows, "{recorded}.request.{endpoint}."+request), append(tokens, request)
	}
	return runRecords(instance, endpoint, tokens, rows...)
}

// RunSpender is `run-admitter` for whoever operates one run: it writes down what the
// request was used for, if there is one.
func RunSpender(instance, endpoint, run, request string) Role {
	if request == "" {
		return runRecords(instance, endpoint, []string{run})
	}
	return runRecords(instance, endpoint, []string{run, request}, "{recorded}.request.{endpoint}."+request)
}

// RunReader is `run-admitter` for whoever only looks at what is recorded of runs.
func RunReader(instance string) Role { return runRecords(instance, "", nil) }

func runRecords(instance, endpoint string, tokens []string, rows ...string) Role {
	return Role{
		name: "run-admitter", account: trust.CTRL, instance: instance, endpoint: checked(endpoint, tokens), life: shortLived,
		publish: append([]string{
			"$JS.API.STREAM.INFO.{records}",
			"$JS.API.STREAM.MSG.GET.{records}",
			"{recorded}.beat.{instance}",
		}, rows...),
	}
}

// RunAttemptReader is `run-attempt-reader`: it reads the journals of runs, and makes their
// stream where it is missing. The journal is the drivers', so it stands in DATA.
func RunAttemptReader() Role {
	return Role{
		name: "run-attempt-reader", account: trust.DATA, life: shortLived,
		publish: []string{
			"$JS.API.STREAM.CREATE.cotal_runs_{space}",
			"$JS.API.STREAM.INFO.cotal_runs_{space}",
			"$JS.API.STREAM.MSG.GET.cotal_runs_{space}",
		},
	}
}

// RunReplayer is RunAttemptReader which also has the journal of one run delivered to one
// user, whose key is given. The user needs no permission for it but to hear his inbox:
// who may ask the stream for anything may have the answer sent to anybody.
func RunReplayer(run, key string) Role {
	r := RunAttemptReader()
	if checked("", []string{run, key}) != "" {
		r.endpoint = badEndpoint
	}
	r.publish = append(r.publish, "$JS.API.CONSUMER.CREATE.cotal_runs_{space}."+ReplayConsumer(run, key)+"."+runjournal.Subject("{space}", run))
	return r
}

// badEndpoint is none, so that a role with it is never connected.
const badEndpoint = "."

// checked is endpoint, unless something is no token and would make another subject of
// those it stands in.
func checked(endpoint string, tokens []string) string {
	for _, t := range tokens {
		if t == "" || strings.ContainsFunc(t, func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
		}) {
			return badEndpoint
		}
	}
	return endpoint
}

// ReplayConsumer is the consumer that delivers the journal of a run to a user.
func ReplayConsumer(run, key string) string {
	sum := sha256.Sum256([]byte(key))
	return run + "-" + hex.EncodeToString(sum[:8])
}

// ReplaySubject is where the journal of a run is delivered to a user.
func ReplaySubject(key string) string { return inboxOf(key) + "." + runjournal.ReplayToken }

// RequestPattern is every request that is made of any service; see package runrequest.
const RequestPattern = "run.*.*.*.*.*.*.*"

// RunObserver is `run-observer`: it hears the requests that are made in DATA. Its being
// there keeps a caller from being told that no service listens.
func RunObserver() Role {
	return Role{name: "run-observer", account: trust.DATA, subscribe: []string{RequestPattern}}
}

// AnswerSubject is where the pause of a run with this token is answered, or its answer
// amended.
func AnswerSubject(space, run, token string, amend bool) string {
	if amend {
		return "cotal." + space + ".amend." + run + "." + token
	}
	return "cotal." + space + ".answer." + run + "." + token
}

// RunUser is a user of DATA that is minted for a run. A run acts in DATA, under what its
// starter might do there; its controller, which made the key, is in SVC.
type RunUser struct {
	Run string
	// Key is the public nkey of the user.
	Key string
	// Issued and Expires are whole seconds; the same ones make the same JWT.
	Issued, Expires time.Time
}

// MintRunDriver signs the user that keeps the journal of a run: it may append to it, and
// hear it and the answers to its pauses. It does nothing else.
func MintRunDriver(m *trust.Material, u RunUser) (string, error) {
	answers := []string{AnswerSubject(m.Space, u.Run, "*", false), AnswerSubject(m.Space, u.Run, "*", true)}
	return mintRun(m, "run-driver", u, []string{runjournal.Subject(m.Space, u.Run)}, answers)
}

// MintRunMediator signs the user that acts for a run, under its ceiling.
func MintRunMediator(m *trust.Material, u RunUser, ceiling messages.RunAdmission) (string, error) {
	if err := grants.CheckAllowance(messages.Allowance{Publish: ceiling.Publish, Subscribe: ceiling.Subscribe}); err != nil {
		return "", messages.RowCorrupt.From(err)
	}
	return mintRun(m, "run-mediator", u, ceiling.Publish, ceiling.Subscribe)
}

// MintRunOperator signs the user that reads the journal of a run, or answers at subject.
func MintRunOperator(m *trust.Material, u RunUser, subject string) (string, error) {
	var publish []string
	if subject != "" {
		publish = []string{subject}
	}
	return mintRun(m, "run-operator", u, publish, nil)
}

func mintRun(m *trust.Material, role string, u RunUser, publish, subscribe []string) (string, error) {
	inbox := inboxOf(u.Key) + ".>"
	return m.MintOwn(trust.OwnUser{
		Account: trust.DATA, Subject: u.Key, Name: "cotal:" + role + ":" + m.Space + ":" + u.Run, Issued: u.Issued, Expires: u.Expires,
		Permissions: jwt.Permissions{
			Pub: jwt.Permission{Allow: append(jwt.StringList{}, publish...), Deny: jwt.StringList{"$SYS.>"}},
			Sub: jwt.Permission{Allow: append(jwt.StringList{inbox}, subscribe...), Deny: append(jwt.StringList{"$SYS.>"}, deeper(subscribe)...)},
		},
	})
}

// deeper denies what the server would deliver past `a.*`, of which it lets subscribe to
// `a.>`, unless another pattern reaches there.
func deeper(allowed []string) []string {
	var deny []string
	for _, pattern := range allowed {
		if !strings.HasSuffix(pattern, ".*") {
			continue
		}
		below, reached := pattern+".>", false
		for _, other := range allowed {
			reached = reached || grants.Overlap(other, below)
		}
		if !reached {
			deny = append(deny, below)
		}
	}
	return deny
}
