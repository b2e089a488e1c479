package ledger_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/names"
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

// TestNoBarrierRefusalRestsOnALeaderThatLags asks where the old leader has nothing yet:
// no head, no operation, no credential that is named.
func TestNoBarrierRefusalRestsOnALeaderThatLags(t *testing.T) {
	w := freshWorld(t)
	w.put("p", "")
	w.enrol()
	h := ledger.Handle{Issuer: "k", ID: "h"}
	root := w.authority("p").Head.Root.ID
	if _, err := w.steady().MintDescendant(t.Context(), ledger.MintDescendant{Principal: principal("p"), UID: w.uid, Root: root,
		ID: "c", Handles: []ledger.Handle{h}, Expires: w.clock.AddDate(0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	rows, err := w.backend.Scan(t.Context(), ledger.Scan{Filter: ledger.LineageOf(h)})
	if err != nil {
		t.Fatal(err)
	}
	holder := w.holder(w.backend)
	behind := func() *ledger.Barrier {
		store := ledger.NewStore(&lagging{Backend: w.backend, old: memory.New()}, brisk)
		return ledger.NewBarrier(store, ledger.Options{Now: w.now})
	}
	id := names.NewUID()
	begin := messages.BeginTakeover{ID: id, Principal: principal("p"), UID: w.uid, By: "x"}
	op, step, err := behind().BeginTakeover(t.Context(), begin)
	if err != nil || len(step.Writes) != 2 {
		t.Fatalf("begin: %+v, %v", step, err)
	}
	if _, err := holder.Lane.Write(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	told := map[string]error{}
	_, told["read"] = behind().Operation(t.Context(), id)
	_, told["frozen"] = behind().Frozen(t.Context(), op)
	_, told["advance"] = behind().Advance(t.Context(), op, messages.StepRevoked)
	_, told["revoke"] = behind().RevokeLineage(t.Context(), rows)
	_, told["freeze"] = behind().FreezeHandle(t.Context(), h)
	_, told["holders"] = behind().Holders(t.Context(), []ledger.Row{{Key: ledger.CredentialKey(w.uid, "c")}})
	_, _, told["retire"] = behind().BeginRetirement(t.Context(), messages.AskRetirement{UID: w.uid, By: "x"})
	for what, err := range told {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What is answered without a write rests on a proved leader too.
	w.revoke()
	asked, err := w.writer(&lagging{Backend: w.backend, old: old(t, w)}).AskRetirement(t.Context(), messages.AskRetirement{Principal: principal("p"), By: "x"})
	if err != nil || asked.Operation != ledger.OperationOf(w.uid) {
		t.Errorf("asked: %+v, %v", asked, err)
	}
}

// reading is a backend on which something happens before a row is read.
type reading struct {
	ledger.Backend
	before func(key string)
}

func (r *reading) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	r.before(key)
	return r.Backend.Get(ctx, key)
}

// TestARetirementAmongTakeovers has each takeover that it finds end, and the next one
// begin, before it can read it.
func TestARetirementAmongTakeovers(t *testing.T) {
	w := freshWorld(t)
	w.put("p", "")
	w.enrol()
	holder := w.holder(w.backend)
	takeover := func(n int) messages.BeginTakeover {
		return messages.BeginTakeover{ID: name("t", n), Principal: principal("p"), UID: w.uid, By: "x"}
	}
	begin := func(n int) {
		if err := holder.Begin(t.Context(), func(ctx context.Context) (messages.Operation, ledger.Step, error) {
			return holder.BeginTakeover(ctx, takeover(n))
		}); err != nil {
			t.Fatal(err)
		}
	}
	begin(0)
	n := 0
	over := &reading{Backend: w.backend, before: func(key string) {
		if key == ledger.OperationKey(name("t", n)) && n < 4 {
			if _, err := holder.Run(t.Context(), name("t", n)); err != nil {
				t.Fatal(err)
			}
			n++
			begin(n)
		}
	}}
	records := ledger.NewBarrier(ledger.NewStore(over, brisk), ledger.Options{Now: w.now})
	if _, err := records.Land(t.Context(), holder.Lane, func(ctx context.Context) (ledger.Step, error) {
		_, step, err := records.BeginRetirement(ctx, messages.AskRetirement{UID: w.uid, By: "x"})
		return step, err
	}); err != nil || n != 4 {
		t.Fatalf("after %d takeovers: %v", n, err)
	}
	if head := w.authority("p").Head; head.State != messages.HeadRetiring || head.Epoch != 5 {
		t.Errorf("the head is %+v", head)
	}
	w.holds()
}

// TestWhatIsDoneMeanwhileIsDone commits an operation between the reads of another
// commit of it.
func TestWhatIsDoneMeanwhileIsDone(t *testing.T) {
	for _, kind := range []messages.OperationKind{messages.Takeover, messages.Retirement} {
		w := freshWorld(t)
		w.put("p", "")
		w.enrol()
		holder := w.holder(w.backend)
		id := ledger.OperationOf(w.uid)
		first := func(ctx context.Context) (messages.Operation, ledger.Step, error) {
			return holder.BeginRetirement(ctx, messages.AskRetirement{UID: w.uid, By: "x"})
		}
		if kind == messages.Takeover {
			id = names.NewUID()
			first = func(ctx context.Context) (messages.Operation, ledger.Step, error) {
				return holder.BeginTakeover(ctx, messages.BeginTakeover{ID: id, Principal: principal("p"), UID: w.uid, By: "x"})
			}
		}
		if err := holder.Begin(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		op, _ := holder.Operation(t.Context(), id)
		for last := map[messages.OperationKind]messages.OperationStep{messages.Takeover: messages.StepEvicted, messages.Retirement: messages.StepDrained}[kind]; op.Step != last; {
			if err := holder.Next(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			op, _ = holder.Operation(t.Context(), id)
		}
		over := &reading{Backend: w.backend, before: func(key string) {
			if key == ledger.HeadKey(principal("p")) {
				if _, err := holder.Run(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}}
		records := ledger.NewBarrier(ledger.NewStore(over, brisk), ledger.Options{Now: w.now})
		commit := records.CommitTakeover
		if kind == messages.Retirement {
			commit = func(ctx context.Context, op messages.Operation) (ledger.Step, error) {
				return records.CommitRetirement(ctx, op, nil)
			}
		}
		if step, err := commit(t.Context(), op); err != nil || !step.Empty() {
			t.Errorf("%s: %+v, %v", kind, step, err)
		}
		w.holds()
	}
}

// old is a leader that has only the grant, as it stands.
func old(t *testing.T, w *world) ledger.Backend {
	b := memory.New()
	row, _, _ := w.backend.Get(t.Context(), ledger.GrantKey(principal("p")))
	if _, err := b.Send(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create(row.Key, row.Value)}}); err != nil {
		t.Fatal(err)
	}
	return b
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
