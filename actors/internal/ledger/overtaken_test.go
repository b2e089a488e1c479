package ledger_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

// interrupted is a backend on which, after a first write that landed and whose
// answer was lost, others go on before it is repeated.
func interrupted(w *world, others func()) ledger.Backend {
	return &hooked{Backend: &flaky{Backend: w.backend, plan: script(lostAfter)}, after: func(n int) {
		if n == 1 {
			others()
		}
	}}
}

func freshWorld(t *testing.T) *world {
	return &world{T: t, backend: memory.New(), clock: someTime}
}

func TestGrantThatWasEditedBeforeItsAnswer(t *testing.T) {
	w := freshWorld(t)
	made, err := w.writer(interrupted(w, func() { w.edit("p", 1) })).PutGrant(t.Context(), put("p", ""))
	if err != nil || made.UID != w.authority("p").Grant.UID {
		t.Fatalf("got %+v, %v", made, err)
	}
}

func TestGrantThatWasRevokedAndGivenAnewBeforeItsAnswer(t *testing.T) {
	for name, others := range map[string]func(*world){
		"a grant that stands":  func(w *world) { w.revoke(); w.put("p", "") },
		"a grant that is over": func(w *world) { w.revoke(); w.put("p", ""); w.enrol(); w.retire() },
	} {
		w := freshWorld(t)
		_, err := w.writer(interrupted(w, func() { others(w) })).PutGrant(t.Context(), put("p", ""))
		if !errors.Is(err, messages.OutcomeUnknown) {
			t.Errorf("%s: got %v", name, err)
		}
		w.holds()
	}
}

func TestEditThatWasWrittenOverBeforeItsAnswer(t *testing.T) {
	for name, others := range map[string]func(*world){
		"edited":             func(w *world) { w.edit("p", 2) },
		"revoked":            func(w *world) { w.revoke() },
		"ended, given anew":  func(w *world) { w.revoke(); w.put("p", "") },
		"and edited at that": func(w *world) { w.revoke(); w.put("p", ""); w.edit("p", 1) },
	} {
		w := freshWorld(t)
		w.put("p", "")
		_, err := w.writer(interrupted(w, func() { others(w) })).EditGrant(t.Context(), messages.EditGrant{Principal: principal("p"), Revision: 1, By: "x"})
		if !errors.Is(err, messages.OutcomeUnknown) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRevocationThatWasWrittenOverBeforeItsAnswer(t *testing.T) {
	w := freshWorld(t)
	w.put("p", "")
	w.enrol()
	var next string
	_, err := w.writer(interrupted(w, func() { w.retire(); w.put("p", ""); next = w.uid })).RevokeGrant(t.Context(), messages.RevokeGrant{Principal: principal("p"), By: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if grant := w.authority("p").Grant; grant.UID != next || grant.State != messages.GrantLive {
		t.Fatalf("it ended the next incarnation too: %+v", grant)
	}
}

func TestAServerThatWasForgottenBeforeItsAnswer(t *testing.T) {
	w := freshWorld(t)
	learn := func(name string) {
		if _, err := w.steady().LearnServers(t.Context(), messages.LearnServers{Names: []string{name}}); err != nil {
			t.Fatal(err)
		}
	}
	learn("a")
	known, err := w.writer(interrupted(w, func() { learn("b") })).ForgetServer(t.Context(), messages.ForgetServer{Name: "a"})
	if err != nil || !slices.Equal(known.Names, []string{"b"}) {
		t.Fatalf("got %v, %v", known, err)
	}
}

func (w *world) edit(actor string, revision uint64) {
	w.Helper()
	if _, err := w.steady().EditGrant(w.Context(), messages.EditGrant{Principal: principal(actor), Revision: revision, By: "x"}); err != nil {
		w.Fatal(err)
	}
}

// lagging is a backend whose reads come from an old leader, until Sync finds the
// new one; after each write that is lost it has fallen back.
type lagging struct {
	ledger.Backend
	mu   sync.Mutex
	old  ledger.Backend
	live bool

	syncs int
}

func (l *lagging) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	return l.reads().Get(ctx, key)
}

func (l *lagging) List(ctx context.Context, filter string) ([]string, error) {
	return l.reads().List(ctx, filter)
}

func (l *lagging) reads() ledger.Backend {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live {
		return l.Backend
	}
	return l.old
}

func (l *lagging) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	last, err := l.Backend.Send(ctx, b)
	if err != nil {
		l.set(false)
	}
	return last, err
}

func (l *lagging) Sync(context.Context) error {
	l.set(true)
	l.syncs++
	return nil
}

func (l *lagging) set(live bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = live
}

func TestNoRefusalRestsOnALeaderThatLags(t *testing.T) {
	w := freshWorld(t)
	w.put("p", "")
	w.put("m", "p")
	w.enrol()
	behind := func() ledger.Backend { return &lagging{Backend: w.backend, old: memory.New()} }
	if _, err := w.writer(behind()).Enrol(t.Context(), messages.Enrol{Principal: principal("p"), UID: w.uid}); err != nil {
		t.Errorf("an exchange: %v", err)
	}
	if _, err := w.writer(behind()).EditGrant(t.Context(), messages.EditGrant{Principal: principal("p"), Revision: 1, By: "x", Allowance: put("p", "").Allowance}); err != nil {
		t.Errorf("an edit: %v", err)
	}
	if _, err := w.writer(behind()).PutGrant(t.Context(), put("n", "m")); err != nil {
		t.Errorf("a grant under one that is not seen: %v", err)
	}
	if _, err := w.writer(behind()).RevokeGrant(t.Context(), messages.RevokeGrant{Principal: principal("p"), By: "x"}); err != nil {
		t.Errorf("a revocation: %v", err)
	}
	for _, actor := range []string{"p", "m", "n"} {
		if grant := w.authority(actor).Grant; grant.State != messages.GrantRevoked {
			t.Errorf("%s is live", actor)
		}
	}
}

// TestALostWriteVoidsTheProof lets somebody edit in between: the leader is proved,
// since at first no grant was seen, then the write is lost, and the refusal that
// follows needs a proof of its own.
func TestALostWriteVoidsTheProof(t *testing.T) {
	w := freshWorld(t)
	w.put("p", "")
	b := &lagging{Backend: w.backend, old: memory.New()}
	between := &meddled{lagging: b, before: func(n int) {
		if n == 1 {
			w.edit("p", 1)
		}
	}}
	_, err := w.writer(between).EditGrant(t.Context(), messages.EditGrant{Principal: principal("p"), Revision: 1, By: "x"})
	if !errors.Is(err, messages.GrantMoved) {
		t.Fatalf("got %v", err)
	}
	if b.syncs != 3 { // of the first refusal, of the lost write, of the last refusal
		t.Errorf("the leader was proved %d times", b.syncs)
	}
}

// meddled calls before each attempt.
type meddled struct {
	*lagging
	sends  int
	before func(n int)
}

func (m *meddled) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	m.sends++
	m.before(m.sends)
	return m.lagging.Send(ctx, b)
}
