package run_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/runjournal"
	"github.com/cotal-ai/authplane/actors/runrequest"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	jobs     = "jobs"
	instance = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	another  = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
	runA     = "run-0000000000000000000000000000000a"
	runB     = "run-0000000000000000000000000000000b"
	ownerA   = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	ownerB   = "u_bbbbbbbbbbbbbbbbbbbbbbbbbb"
	standing = time.Hour
)

var (
	alice = messages.Principal{Owner: ownerA, Actor: "laptop"}
	alan  = messages.Principal{Owner: ownerA, Actor: "phone"}
	bob   = messages.Principal{Owner: ownerB, Actor: "laptop"}
)

// book is what the ledger holds.
type book struct {
	mu    sync.Mutex
	gates map[string]messages.Instance
	who   map[messages.Principal]messages.Authority
	// after, if set, is called when a gate was read.
	after func()
}

func (b *book) Instance(_ context.Context, ask messages.ReadInstance) (messages.Instance, error) {
	b.mu.Lock()
	gate, found := b.gates[ask.Instance]
	after := b.after
	b.mu.Unlock()
	if after != nil {
		after()
	}
	if !found || gate.Endpoint != ask.Endpoint {
		return messages.Instance{}, messages.InstanceNotFound
	}
	return gate, nil
}

func (b *book) Authority(_ context.Context, ask messages.ReadAuthority) (messages.Authority, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.who[ask.Principal], nil
}

func uidOf(p messages.Principal) string {
	if uid, found := map[messages.Principal]string{alice: "alicealicealicealicealice01", alan: "alanalanalanalanalanalan01", bob: "bobbobbobbobbobbobbobbob01"}[p]; found {
		return uid
	}
	return "othersothersothersothers01"
}

func (b *book) grant(p messages.Principal, publish ...string) {
	b.who[p] = messages.Authority{
		HasHead: true, Head: messages.Head{Principal: p, UID: uidOf(p), Epoch: 1, State: messages.HeadActive, Generation: 1},
		HasGrant: true, Grant: messages.Grant{Principal: p, Kind: messages.Interactive, UID: uidOf(p), Revision: 3, State: messages.GrantLive,
			Allowance: messages.Allowance{Publish: publish, Subscribe: []string{"demo.>"}}},
	}
}

// rig is a desk over rows in memory.
type rig struct {
	t       *testing.T
	book    *book
	rows    *memory.Backend
	backend *frail
	desk    *run.Desk
	seen    *run.Observations
	keys    map[messages.Principal]nkeys.KeyPair
	clock   time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, rows: memory.New(), clock: time.Unix(1_800_000_000, 0), keys: map[messages.Principal]nkeys.KeyPair{},
		book: &book{gates: map[string]messages.Instance{}, who: map[messages.Principal]messages.Authority{}}}
	for name, p := range map[string]messages.Principal{instance: alice, another: alice} {
		r.book.gates[name] = messages.Instance{Endpoint: jobs, Name: name, State: messages.InstanceOpen, Generation: 1, Epoch: 4, Principal: p}
	}
	for _, p := range []messages.Principal{alice, alan, bob} {
		r.keys[p] = newKey(t)
		r.book.grant(p, "demo.>", runrequest.Subject{Endpoint: jobs, Command: "*", Caller: p}.Pattern())
	}
	signer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := run.NewCertificates("acme", signer)
	if err != nil {
		t.Fatal(err)
	}
	r.backend = &frail{Backend: r.rows}
	r.seen = run.NewObservations(nil)
	r.desk = &run.Desk{Space: "acme", Records: ledger.NewStore(r.backend, ledger.DefaultPatience()), Authority: r.book, Receipts: run.ByGate(r.book),
		Certificates: certificates, Observed: r.seen, Now: func() time.Time { return r.clock }}
	return r
}

func newKey(t *testing.T) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(t *testing.T, key nkeys.KeyPair) string {
	t.Helper()
	p, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func controller() messages.RunController {
	return messages.RunController{Endpoint: jobs, Instance: instance, Epoch: 4, Principal: alice}
}

// certificate is that of a caller's key, for the next minute.
func (r *rig) certificate(p messages.Principal) string {
	r.t.Helper()
	c, err := r.desk.Certificates.Sign(run.Caller{Principal: p, UID: uidOf(p), Key: public(r.t, r.keys[p]), Expires: r.clock.Add(time.Minute)})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func subjectOf(p messages.Principal, command string) runrequest.Subject {
	return runrequest.Subject{Endpoint: jobs, Instance: runrequest.Any, Command: command, Caller: p, UID: uidOf(p), Nonce: runrequest.NewNonce()}
}

// signed is a request of somebody, as the controller forwards it.
func (r *rig) signed(p messages.Principal, command string, body runrequest.Body, change ...func(*runrequest.Subject)) messages.RunRequest {
	r.t.Helper()
	subject := subjectOf(p, command)
	for _, c := range change {
		c(&subject)
	}
	m, err := runrequest.Sign(r.keys[p], r.certificate(p), "acme", subject, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return runrequest.Forward(m)
}

// published is a request that is not signed.
func (r *rig) published(p messages.Principal, body runrequest.Body) messages.RunRequest {
	r.t.Helper()
	payload, err := body.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	return messages.RunRequest{Subject: subjectOf(p, runrequest.Start).String(), Payload: payload}
}

func (r *rig) see(q messages.RunRequest) {
	r.seen.See(messages.AwaitRequest{Subject: q.Subject, Digest: runrequest.Digest(q.Payload)})
}

func (r *rig) admit(name string, q messages.RunRequest) (messages.RunAdmitted, error) {
	return r.desk.Admit(r.t.Context(), messages.AdmitRun{Controller: controller(), Run: name, Request: q})
}

// admitted is a run of alice's.
func (r *rig) admitted(name string) messages.RunAdmitted {
	r.t.Helper()
	a, err := r.admit(name, r.signed(alice, runrequest.Start, runrequest.Body{}))
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// keysNow are those of all rows.
func (r *rig) keysNow() []string {
	r.t.Helper()
	keys, err := r.rows.List(r.t.Context(), ">")
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

// attempt is the n-th question for a driver of runA.
func (r *rig) attempt(n uint64) messages.AttemptRun {
	return messages.AttemptRun{Controller: controller(), Run: runA, Request: fmt.Sprintf("request-%022d", n), Takeover: fmt.Sprintf("t%d", n), Attempt: n,
		Driver: public(r.t, newKey(r.t)), Mediator: public(r.t, newKey(r.t))}
}

func (r *rig) reserve(ask messages.AttemptRun, journal *runjournal.History) (messages.RunAttempt, error) {
	if journal == nil {
		journal = &runjournal.History{}
	}
	a, _, err := r.desk.Reserve(r.t.Context(), ask, standing, journal)
	return a, err
}

// journal is a history with these entries behind one activation.
func journal(t *testing.T, entries ...any) *runjournal.History {
	t.Helper()
	sink := &sink{}
	j, err := runjournal.Take(t.Context(), sink, sink, runjournal.Taking{Mode: runjournal.New, Lease: runjournal.Lease{Holder: "d", Token: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	h := j.History()
	return &h
}

type sink struct{ last uint64 }

func (*sink) Run() string                                               { return runA }
func (*sink) Read(context.Context, uint64) ([]runjournal.Stored, error) { return nil, nil }
func (s *sink) Append(context.Context, []byte, uint64) (uint64, error) {
	s.last++
	return s.last, nil
}

// fault is what becomes of a write.
type fault int

const (
	none   fault = iota
	before       // it never lands, and whoever wrote it dies
	after        // it lands, and whoever wrote it dies
	unsaid       // it lands, and the answer is lost
)

// frail is a backend whose next write goes wrong.
type frail struct {
	ledger.Backend
	mu   sync.Mutex
	next fault
	die  context.CancelFunc
}

func (f *frail) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	f.mu.Lock()
	next := f.next
	f.next = none
	f.mu.Unlock()
	switch next {
	case before:
		f.die()
		return 0, ledger.ErrUnknown
	case after:
		_, _ = f.Backend.Send(ctx, b)
		f.die()
		return 0, ledger.ErrUnknown
	case unsaid:
		_, _ = f.Backend.Send(ctx, b)
		return 0, ledger.ErrUnknown
	}
	return f.Backend.Send(ctx, b)
}

func same(a, b messages.RunAdmission) bool {
	p, s := slices.Equal(a.Publish, b.Publish), slices.Equal(a.Subscribe, b.Subscribe)
	return p && s && a.Caller == b.Caller && a.Request == b.Request && a.AdmittedAt.Equal(b.AdmittedAt) && a.Instance == b.Instance && a.Witness == b.Witness
}

func spoilt(signature string) string {
	raw, _ := base64.RawURLEncoding.DecodeString(signature)
	raw[3] ^= 1
	return base64.RawURLEncoding.EncodeToString(raw)
}
