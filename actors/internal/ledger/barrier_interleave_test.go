package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

// deed is one call of anybody's. who and what choose among the few there are.
type deed struct {
	kind      string
	who, what int
}

func (d deed) String() string { return fmt.Sprintf("%s(%d,%d)", d.kind, d.who, d.what) }

var deeds = []string{"put", "enrol", "enrol", "mint", "mint", "edit", "revoke one", "revoke", "ask", "unask", "redeem", "learn",
	"takeover", "retire", "retire", "step", "step", "step", "freeze handle", "revoke lineage", "another holder"}

// round is what happens at once, and in which order call by call.
type round struct {
	deeds    []deed
	schedule []int
	fates    []fate
	// later is how much time passes before.
	later time.Duration
}

// history is a ledger to which rounds happen.
type history struct {
	*world
	// door is how whoever holds the plane reaches the ledger at this moment.
	door   *door
	mu     sync.Mutex
	holder *contract.Holder
	last   map[string]ledger.Row
	at     messages.Instance
}

// door is a backend that stands for another one, which changes between rounds.
type door struct {
	mu sync.Mutex
	to ledger.Backend
}

func (d *door) lead(to ledger.Backend) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = to
}

func (d *door) through() ledger.Backend {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.to
}

func (d *door) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	return d.through().Get(ctx, key)
}

func (d *door) List(ctx context.Context, filter string) ([]string, error) {
	return d.through().List(ctx, filter)
}

func (d *door) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	return d.through().Send(ctx, b)
}

func (d *door) Sync(ctx context.Context) error { return d.through().Sync(ctx) }

func newHistory(t *testing.T) *history {
	h := &history{world: &world{T: t, backend: memory.New(), clock: someTime}}
	h.door = &door{to: h.backend}
	h.holder = h.world.holder(h.door)
	registrar := ledger.NewRegistrar(ledger.NewStore(h.backend, steady), nil, nil)
	done, err := registrar.Register(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	h.at = done.Instance
	return h
}

// play performs a round and says what cannot be.
func (h *history) play(r round) error {
	h.clock = h.clock.Add(r.later)
	gate := &turnstile{backend: &flaky{Backend: h.backend, plan: script(r.fates...)}}
	h.door.lead(entrance{gate, len(r.deeds)})
	defer h.door.lead(h.backend)
	lane := h.holder.Lane
	told := letThrough(gate, r.schedule, len(r.deeds), func(i int) error {
		return h.perform(h.Context(), r.deeds[i], lane, ledger.NewStore(entrance{gate, i}, steady))
	})
	for i, err := range told {
		if entry := messages.Describe(err); err != nil && (entry == messages.InternalFault || entry == messages.RowCorrupt) {
			return fmt.Errorf("%v was told %w", r.deeds[i], err)
		}
	}
	if err := ledger.CheckInvariants(h.Context(), h.backend); err != nil {
		return err
	}
	return h.onlyOnwards()
}

// perform does one deed through store. What the holder writes goes through its one
// lane, what it reads through store.
func (h *history) perform(ctx context.Context, d deed, lane ledger.Lane, store *ledger.Store) error {
	p := principal([]string{"p", "q"}[d.who])
	writer := ledger.NewWriter(store, ledger.Options{Instance: fmt.Sprint("i", d.what), Now: h.now})
	holder := contract.Over(ledger.NewBarrier(store, ledger.Options{Now: h.now}), lane, store)
	known, err := ledger.NewReader(h.backend, h.now).Authority(ctx, messages.ReadAuthority{Principal: p, Head: true})
	if err != nil {
		return err
	}
	handles := []ledger.Handle{{Issuer: "k", ID: fmt.Sprint("h", d.what)}}
	switch d.kind {
	case "put":
		_, err = writer.PutGrant(ctx, put(p.Actor, ""))
	case "enrol":
		_, err = writer.Enrol(ctx, messages.Enrol{Principal: p, UID: known.Grant.UID})
	case "edit":
		_, err = writer.EditGrant(ctx, messages.EditGrant{Principal: p, Revision: known.Grant.Revision, By: "x"})
	case "mint":
		_, err = writer.MintDescendant(ctx, ledger.MintDescendant{Principal: p, UID: known.Head.UID, Root: known.Head.Root.ID,
			ID: fmt.Sprint("c", d.what), Handles: handles, Expires: someTime.AddDate(10, 0, 0)})
	case "revoke one":
		err = writer.RevokeCredential(ctx, ledger.RevokeCredential{UID: known.Head.UID, ID: fmt.Sprint("c", d.what)})
	case "redeem":
		_, err = writer.RedeemSession(ctx, ledger.RedeemSession{ID: fmt.Sprint("s", d.what), Principal: p, UID: known.Head.UID, Root: known.Head.Root.ID,
			Endpoint: h.at.Endpoint, Instance: h.at.Name, Epoch: h.at.Epoch, Expires: someTime.AddDate(10, 0, 0)})
	case "revoke":
		_, err = writer.RevokeGrant(ctx, messages.RevokeGrant{Principal: p, By: "x"})
	case "ask":
		_, err = writer.AskRetirement(ctx, messages.AskRetirement{Principal: p, By: "x"})
	case "unask":
		_, err = writer.Unask(ctx, messages.Unask{UIDs: h.asked()})
	case "learn":
		_, err = writer.LearnServers(ctx, messages.LearnServers{Names: []string{fmt.Sprint("n", d.what)}})
	case "takeover":
		err = holder.Begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) {
			return holder.BeginTakeover(ctx, messages.BeginTakeover{ID: name("t", 2*d.what+d.who), Principal: p, UID: known.Head.UID, By: "x"})
		})
	case "retire":
		err = holder.Begin(ctx, func(ctx context.Context) (messages.Operation, ledger.Step, error) {
			return holder.BeginRetirement(ctx, messages.AskRetirement{UID: known.Head.UID})
		})
	case "step":
		var owed []messages.Operation
		if owed, err = holder.Owed(ctx); err == nil && len(owed) > 0 {
			err = holder.Next(ctx, owed[(d.who+d.what)%len(owed)])
		}
	case "freeze handle":
		_, err = holder.Land(ctx, holder.Lane, func(ctx context.Context) (ledger.Step, error) { return holder.FreezeHandle(ctx, handles[0]) })
	case "revoke lineage":
		err = holder.RevokeHandle(ctx, handles[0])
	case "another holder":
		var next *contract.Holder
		if next, err = contract.NewHolder(ctx, ledger.NewStore(h.door, steady), ledger.Options{Now: h.now}); err == nil {
			h.mu.Lock()
			h.holder = next
			h.mu.Unlock()
		}
	}
	return err
}

// onlyOnwards holds every row against what it was before: much of it is written
// once, and what has ended stays so.
func (h *history) onlyOnwards() error {
	rows, err := h.backend.Scan(h.Context(), ledger.Scan{Filter: ">"})
	if err != nil {
		return err
	}
	now := map[string]ledger.Row{}
	var broken []error
	for _, row := range rows {
		now[row.Key] = row
		if before, found := h.last[row.Key]; found && !follows(before, row) {
			broken = append(broken, fmt.Errorf("%s was %s and is %s", row.Key, before.Value, row.Value))
		}
	}
	for key := range h.last {
		if _, found := now[key]; !found {
			broken = append(broken, fmt.Errorf("%s is gone", key))
		}
	}
	h.last = now
	return errors.Join(broken...)
}

// follows reports whether a row may come after before, in however many steps.
func follows(before, after ledger.Row) bool {
	same := string(before.Value) == string(after.Value)
	switch family, _, _ := strings.Cut(before.Key, "."); family {
	case "frontier", "session", "uid", "bysrc":
		return same
	case "cred", "icred":
		return same || !strings.Contains(string(before.Value), `"state":"revoked"`)
	case "srcgate":
		return same || !strings.Contains(string(before.Value), `"state":"frozen"`)
	case "op":
		a, _ := ledger.DecodeOperation(before)
		return same || a.Step != messages.StepDone && a.Step != messages.StepSuperseded
	case "head":
		a, _ := ledger.DecodeHead(before)
		b, _ := ledger.DecodeHead(after)
		return a.UID != b.UID && a.State == messages.HeadRetired || same ||
			a.UID == b.UID && a.State != messages.HeadRetired && a.Epoch <= b.Epoch && a.Generation <= b.Generation
	case "grant":
		a, _ := ledger.DecodeGrant(before)
		b, _ := ledger.DecodeGrant(after)
		return same || a.UID == b.UID && a.State == messages.GrantLive && a.Revision < b.Revision || a.UID != b.UID
	}
	return true
}

// ends finishes all that is begun or asked for, and takes both through a whole
// further life: nobody is stuck, and nobody is forgotten.
func (h *history) ends() error {
	holder := h.world.holder(h.backend)
	owed, err := holder.Owed(h.Context())
	if err != nil {
		return err
	}
	for _, op := range owed {
		if _, err := holder.Run(h.Context(), op.ID); err != nil {
			return fmt.Errorf("finish %s of %s: %w", op.Kind, op.Principal, err)
		}
	}
	if err := holder.RetireAsked(h.Context()); err != nil {
		return err
	}
	for _, actor := range []string{"p", "q"} {
		found := h.authority(actor)
		if found.HasGrant && found.Grant.State == messages.GrantRevoked && found.HasHead && found.Head.State != messages.HeadRetired {
			return fmt.Errorf("%s is revoked, and nobody retired it", actor)
		}
	}
	if err := ledger.CheckInvariants(h.Context(), h.backend); err != nil {
		return err
	}
	if err := h.onlyOnwards(); err != nil {
		return err
	}
	for _, instance := range []string{"i0", "i1"} {
		writer := ledger.NewWriter(ledger.NewStore(h.backend, steady), ledger.Options{Instance: instance, Now: h.now})
		if _, err := writer.Unask(h.Context(), messages.Unask{UIDs: h.asked()}); err != nil {
			return err
		}
	}
	h.notStuck()
	return nil
}

// TestBarriersInterleaved puts everybody who writes on two principals: exchanges,
// mints, redemptions, revocations, and the holder of the plane with its operations, in
// any order of their single reads and writes, with any fate of these.
func TestBarriersInterleaved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var rounds []round
		// Lives in which much can happen are made likely.
		rounds = append(rounds, round{deeds: []deed{{kind: "put"}, {kind: "put", who: 1}}}, round{deeds: []deed{{kind: "enrol"}, {kind: "enrol", who: 1}}},
			round{deeds: []deed{{kind: "mint"}, {kind: "mint", who: 1}}})
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			var r round
			for range rapid.IntRange(1, 4).Draw(rt, "at once") {
				r.deeds = append(r.deeds, deed{kind: rapid.SampledFrom(deeds).Draw(rt, "kind"), who: rapid.IntRange(0, 1).Draw(rt, "who"), what: rapid.IntRange(0, 1).Draw(rt, "what")})
			}
			r.schedule = rapid.SliceOfN(rapid.IntRange(0, 5), 0, 60).Draw(rt, "schedule")
			r.fates = rapid.SliceOfN(rapid.SampledFrom(append([]fate{answered, answered}, survived...)), 0, 8).Draw(rt, "fates")
			r.later = rapid.SampledFrom([]time.Duration{0, 0, time.Second, 60 * 24 * time.Hour}).Draw(rt, "later")
			rounds = append(rounds, r)
		}
		if err := live(t, rounds); err != nil {
			rt.Fatalf("%v\nin %v", err, rounds)
		}
	})
}

func live(t *testing.T, rounds []round) (complaint error) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t)
		for i, r := range rounds {
			if complaint = h.play(r); complaint != nil {
				complaint = fmt.Errorf("round %d: %w", i, complaint)
				return
			}
		}
		complaint = h.ends()
	})
	return complaint
}
