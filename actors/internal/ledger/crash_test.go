package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// world is a ledger with some history, and writers on it.
type world struct {
	*testing.T
	backend *memory.Backend
	clock   time.Time
	// uid is the incarnation of p's last grant.
	uid string
}

func (w *world) now() time.Time { return w.clock }

func (w *world) writer(b ledger.Backend) *ledger.Writer {
	return ledger.NewWriter(ledger.NewStore(b, brisk), ledger.Options{Instance: "i", Now: w.now})
}

func (w *world) steady() *ledger.Writer { return w.writer(w.backend) }

func (w *world) put(actor, parent string) {
	w.Helper()
	ask := put(actor, parent)
	made, err := w.steady().PutGrant(w.Context(), ask)
	if err != nil {
		w.Fatal(err)
	}
	if actor == "p" {
		w.uid = made.UID
	}
}

func (w *world) enrol() {
	w.Helper()
	if _, err := w.steady().Enrol(w.Context(), messages.Enrol{Principal: principal("p"), UID: w.uid}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) revoke() {
	w.Helper()
	if _, err := w.steady().RevokeGrant(w.Context(), messages.RevokeGrant{Principal: principal("p"), By: "x"}); err != nil {
		w.Fatal(err)
	}
}

// holder takes the plane.
func (w *world) holder(b ledger.Backend) *contract.Holder {
	w.Helper()
	h, err := contract.NewHolder(w.Context(), ledger.NewStore(b, brisk), ledger.Options{Now: w.now})
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// asked are the incarnations that somebody asks to be retired.
func (w *world) asked() []string {
	w.Helper()
	uids, err := ledger.Asked(w.Context(), w.backend)
	if err != nil {
		w.Fatal(err)
	}
	return uids
}

// retire revokes and has it retired.
func (w *world) retire() {
	w.Helper()
	w.revoke()
	if err := w.holder(w.backend).RetireAsked(w.Context()); err != nil {
		w.Fatal(err)
	}
	if _, err := w.steady().Unask(w.Context(), messages.Unask{UIDs: w.asked()}); err != nil || len(w.asked()) != 0 {
		w.Fatalf("left are %v, %v", w.asked(), err)
	}
}

func (w *world) authority(actor string) messages.Authority {
	w.Helper()
	found, err := ledger.NewReader(w.backend, w.now).Authority(w.Context(), messages.ReadAuthority{Principal: principal(actor), Head: true})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// takeover has p taken over: the next epoch, and no root.
func (w *world) takeover() {
	w.Helper()
	if _, err := w.holder(w.backend).Takeover(w.Context(), messages.BeginTakeover{ID: names.NewUID(), Principal: principal("p"), UID: w.uid, By: "x"}); err != nil {
		w.Fatal(err)
	}
}

func put(actor, parent string) messages.PutGrant {
	ask := messages.PutGrant{Principal: principal(actor), Kind: messages.Interactive, By: "x",
		Allowance: messages.Allowance{Scope: []string{"s"}, Publish: []string{"a.>"}}}
	if parent != "" {
		ask.Kind, ask.Parent = messages.Managed, principal(parent)
	}
	return ask
}

// transition is one that can be cut anywhere. run reports what its caller was told.
type transition struct {
	name  string
	setup func(*world)
	run   func(context.Context, *world, *ledger.Writer) error
	// done checks that it happened.
	done func(*world) bool
	// again are the refusals that a second attempt may get when the first had landed.
	again []error
}

func transitions() []transition {
	runPut := func(actor, parent string) func(context.Context, *world, *ledger.Writer) error {
		return func(ctx context.Context, w *world, writer *ledger.Writer) error {
			_, err := writer.PutGrant(ctx, put(actor, parent))
			return err
		}
	}
	runEdit := func(actor string, rotate bool) func(context.Context, *world, *ledger.Writer) error {
		return func(ctx context.Context, _ *world, writer *ledger.Writer) error {
			after, err := writer.EditGrant(ctx, messages.EditGrant{Principal: principal(actor), Revision: 1, By: "x", Label: "edited", RotateSecret: rotate})
			if err == nil && after.Revision != 2 {
				return fmt.Errorf("the edit is revision %d", after.Revision)
			}
			return err
		}
	}
	runRevoke := func(ctx context.Context, _ *world, writer *ledger.Writer) error {
		_, err := writer.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal("p"), By: "x"})
		return err
	}
	runEnrol := func(ctx context.Context, w *world, writer *ledger.Writer) error {
		root, err := writer.Enrol(ctx, messages.Enrol{Principal: principal("p"), UID: w.uid})
		if err == nil && w.authority("p").Head.Root.ID != root.CredentialID {
			return errors.New("the root that was answered is not the root that stands")
		}
		return err
	}
	live := func(actor string) func(*world) bool {
		return func(w *world) bool { return w.authority(actor).Grant.State == messages.GrantLive }
	}
	edited := func(actor string) func(*world) bool {
		return func(w *world) bool { return w.authority(actor).Grant.Label == "edited" }
	}
	ended := func(actors ...string) func(*world) bool {
		return func(w *world) bool {
			for _, actor := range actors {
				found := w.authority(actor)
				if found.Grant.State != messages.GrantRevoked {
					return false
				}
				if found.HasHead && !slices.Contains(w.asked(), found.Head.UID) {
					return false
				}
			}
			return true
		}
	}
	rooted := func(w *world) bool {
		head := w.authority("p").Head
		return head.UID == w.uid && head.Root.Expires.Sub(w.clock) >= 45*24*time.Hour
	}
	return []transition{
		{"grant", func(*world) {}, runPut("p", ""), live("p"), []error{messages.GrantStands}},
		{"grant a machine", func(w *world) { w.put("p", "") }, runPut("m", "p"), live("m"), []error{messages.GrantStands}},
		{"grant over a revoked one", func(w *world) { w.put("p", ""); w.enrol(); w.retire() }, runPut("p", ""), live("p"), []error{messages.GrantStands}},
		{"edit", func(w *world) { w.put("p", "") }, runEdit("p", false), edited("p"), []error{messages.GrantMoved}},
		{"rotate a machine's secret", func(w *world) { w.put("p", ""); w.put("m", "p") }, runEdit("m", true), edited("m"), []error{messages.GrantMoved}},
		{"revoke without a head", func(w *world) { w.put("p", "") }, runRevoke, ended("p"), nil},
		{"revoke", func(w *world) { w.put("p", ""); w.enrol() }, runRevoke, ended("p"), nil},
		{"revoke with machines below", func(w *world) { w.put("p", ""); w.enrol(); w.put("m", "p"); w.put("n", "m") }, runRevoke, ended("p", "m", "n"), nil},
		{"first exchange", func(w *world) { w.put("p", "") }, runEnrol, rooted, nil},
		{"first exchange of the next incarnation", func(w *world) { w.put("p", ""); w.enrol(); w.retire(); w.put("p", "") }, runEnrol, rooted, nil},
		{"renew the root", func(w *world) { w.put("p", ""); w.enrol(); w.clock = w.clock.Add(80 * 24 * time.Hour) }, runEnrol, rooted, nil},
		{"fill an empty root", func(w *world) { w.put("p", ""); w.enrol(); w.takeover() }, runEnrol, rooted, nil},
	}
}

func newWorld(t *testing.T, tr transition) *world {
	w := &world{T: t, backend: memory.New(), clock: someTime}
	tr.setup(w)
	return w
}

func (w *world) holds() {
	w.Helper()
	if err := ledger.CheckInvariants(w.Context(), w.backend); err != nil {
		w.Error(err)
	}
}

// TestCutAnywhere cuts every transition at every write in every way.
func TestCutAnywhere(t *testing.T) {
	for _, tr := range transitions() {
		t.Run(tr.name, func(t *testing.T) {
			clean := newWorld(t, tr)
			counted := &flaky{Backend: clean.backend, plan: untroubled}
			if err := tr.run(t.Context(), clean, clean.writer(counted)); err != nil || !tr.done(clean) || counted.sends == 0 {
				t.Fatalf("without any cut: %v after %d writes", err, counted.sends)
			}
			clean.holds()
			for at := range counted.sends {
				for _, f := range survived {
					t.Run(fmt.Sprintf("write %d: %s", at, f), func(t *testing.T) { troubled(newWorld(t, tr), tr, at, f) })
				}
				for _, f := range []fate{diesBefore, diesAfter} {
					t.Run(fmt.Sprintf("write %d: %s", at, f), func(t *testing.T) { cut(newWorld(t, tr), tr, at, f) })
				}
			}
		})
	}
}

// troubled lets the caller live: he must be told the truth, and never of a conflict
// with himself.
func troubled(w *world, tr transition, at int, f fate) {
	if err := tr.run(w.Context(), w, w.writer(&flaky{Backend: w.backend, plan: nth(at, f)})); err != nil {
		w.Errorf("told %v", err)
	}
	if !tr.done(w) {
		w.Error("it did not happen")
	}
	w.holds()
}

// cut lets the process die: what is left must hold, and the next attempt must end
// where the first would have.
func cut(w *world, tr transition, at int, f fate) {
	if err := tr.run(w.Context(), w, w.writer(&flaky{Backend: w.backend, plan: nth(at, f)})); err == nil {
		w.Error("the dead process answered")
	}
	w.holds()
	err := tr.run(w.Context(), w, w.steady())
	if err != nil && !among(err, tr.again) {
		w.Errorf("the next attempt: %v", err)
	}
	if !tr.done(w) {
		w.Error("the next attempt did not finish it")
	}
	w.holds()
	w.notStuck()
}

// notStuck takes the principal through a whole further life.
func (w *world) notStuck() {
	if w.authority("p").HasGrant {
		w.retire()
	}
	w.put("p", "")
	w.enrol()
	w.put("k", "p")
	w.retire()
	w.holds()
}

func among(err error, allowed []error) bool {
	for _, a := range allowed {
		if errors.Is(err, a) {
			return true
		}
	}
	return false
}
