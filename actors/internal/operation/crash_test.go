package operation_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// TestCutAtEachWrite has the process that runs an operation cut before, after, and
// after-with-the-answer-lost at each of its writes. The next one goes on, and it ends
// as if nothing had happened.
func TestCutAtEachWrite(t *testing.T) {
	for _, kind := range []messages.OperationKind{messages.Takeover, messages.Retirement} {
		for _, how := range []string{"before", "after", "lost"} {
			writes := 0
			for at := 1; ; at++ {
				whole := false
				t.Run(fmt.Sprintf("%s %s write %d", kind, how, at), func(t *testing.T) { whole = cutAt(t, kind, how, at) })
				if whole || t.Failed() {
					break
				}
				writes++
			}
			// The claim, begun, two batches of credentials, revoked, evicted, drained, done.
			if want := map[messages.OperationKind]int{messages.Takeover: 7, messages.Retirement: 8}[kind]; writes != want {
				t.Errorf("%s %s: cut at %d writes, want %d", kind, how, writes, want)
			}
		}
	}
}

// cutAt plays one cut and reports whether the operation was whole before it came.
func cutAt(t *testing.T, kind messages.OperationKind, how string, at int) (whole bool) {
	w := newWorld(t)
	ctx, die := context.WithCancel(t.Context())
	defer die()
	line := &cut{Backend: w.backend, how: how, at: at, die: die}
	p, err := w.boot(ctx, line)
	if err == nil {
		_, err = p.run(ctx, kind)
	}
	whole = line.sent < at
	if (err == nil) != (whole || how == "lost") {
		t.Fatalf("after %d writes: %v", line.sent, err)
	}
	first := w.evicted
	next, err := w.boot(t.Context(), w.backend)
	w.must(err)
	op, err := next.run(t.Context(), kind)
	w.must(err)
	w.check(op, kind)
	if again := w.evicted - first; whole && again > 0 || first+again > 2 || first+again == 0 {
		t.Errorf("evicted %d times, and then %d times", first, again)
	}
	owed, err := next.held.Lane().Owed(t.Context())
	if err != nil || len(owed.Ops) > 0 {
		t.Errorf("owed: %v, %v", owed, err)
	}
	return whole
}

// check looks at what an operation leaves behind.
func (w *world) check(op messages.Operation, kind messages.OperationKind) {
	w.Helper()
	if op.Step != messages.StepDone || op.Ended.IsZero() || op.Outcome.Revoked != issued || op.Outcome.Evicted != 5 ||
		op.Outcome.Eviction != messages.EvictionSwept || !slices.Equal(op.Outcome.Servers, []string{"n1"}) {
		w.Errorf("the operation ended as %+v", op)
	}
	if w.early {
		w.Error("evicted before nothing more could be issued")
	}
	if n := w.active(); n > 0 {
		w.Errorf("%d credentials came back", n)
	}
	head := w.head()
	switch kind {
	case messages.Takeover:
		if head.State != messages.HeadActive || head.Epoch != 2 || head.Generation != 2 || head.Root.ID != "" || op.Outcome.Epoch != 2 {
			w.Errorf("the head is %+v", head)
		}
	case messages.Retirement:
		if head.State != messages.HeadRetired || op.Outcome.Frontiers["KV_cotal_records_main"] != 7 {
			w.Errorf("the head is %+v, the frontiers %v", head, op.Outcome.Frontiers)
		}
	}
	w.must(ledger.CheckInvariants(context.Background(), w.backend))
}
