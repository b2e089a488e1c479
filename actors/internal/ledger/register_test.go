package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

var asked = messages.RegisterInstance{Endpoint: "svc_a", Instance: uid, Principal: principal("svc")}

// eviction notes whom it was asked to evict, and does what it is told.
type eviction struct {
	calls   int
	holders []messages.Principal
	do      func() error
}

func (e *eviction) evict(_ context.Context, holders []messages.Principal) error {
	e.calls++
	e.holders = slices.Clone(holders)
	if e.do != nil {
		return e.do()
	}
	return nil
}

func registrar(b ledger.Backend, e *eviction) *ledger.Registrar {
	return ledger.NewRegistrar(ledger.NewStore(b, brisk), e.evict, nil)
}

func register(t *testing.T, b ledger.Backend, e *eviction) messages.InstanceRegistered {
	t.Helper()
	done, err := registrar(b, e).Register(t.Context(), asked)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	return done
}

// issue gives the registered process a credential, as the issuer does: it touches
// the gate, and so needs it as it was.
func issue(ctx context.Context, b ledger.Backend, to messages.InstanceRegistered, id, holder string) error {
	key := ledger.InstanceKey(asked.Endpoint, asked.Instance)
	gate, _, err := b.Get(ctx, key)
	if err != nil {
		return err
	}
	now, err := ledger.DecodeInstance(gate)
	if err != nil {
		return err
	}
	if now != to.Instance {
		return ledger.ErrLost
	}
	value, err := ledger.EncodeInstanceCredential(ledger.InstanceCredential{ID: id, Holder: principal(holder), Endpoint: asked.Endpoint,
		Instance: asked.Instance, Epoch: to.Instance.Epoch, State: ledger.CredentialActive, Expires: someTime})
	if err != nil {
		return err
	}
	_, err = ledger.NewStore(b, brisk).Apply(ctx, ledger.Batch{Writes: []ledger.Write{
		ledger.Create(ledger.InstanceCredentialKey(asked.Endpoint, asked.Instance, id), value), ledger.Touch(gate)}})
	return err
}

func mustIssue(t *testing.T, b ledger.Backend, to messages.InstanceRegistered, id, holder string) {
	t.Helper()
	if err := issue(t.Context(), b, to, id, holder); err != nil {
		t.Fatalf("issue %s: %v", id, err)
	}
}

// standing are the instance's gate and its credentials' states.
func standing(t *testing.T, b *memory.Backend) (messages.Instance, map[string]ledger.InstanceCredential) {
	t.Helper()
	row, found, err := b.Get(t.Context(), ledger.InstanceKey(asked.Endpoint, asked.Instance))
	if err != nil || !found {
		t.Fatalf("the gate: %v, %v", found, err)
	}
	gate, err := ledger.DecodeInstance(row)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := b.Scan(t.Context(), ledger.Scan{Filter: ledger.InstanceCredentialsOf(asked.Endpoint, asked.Instance)})
	if err != nil {
		t.Fatal(err)
	}
	credentials := map[string]ledger.InstanceCredential{}
	for _, row := range rows {
		c, err := ledger.DecodeInstanceCredential(row)
		if err != nil {
			t.Fatal(err)
		}
		credentials[c.ID] = c
	}
	return gate, credentials
}

func TestEachProcessHasTheNextEpoch(t *testing.T) {
	b, e := memory.New(), &eviction{}
	revision := uint64(0)
	for epoch := range uint64(4) {
		done := register(t, b, e)
		got := done.Instance
		if got.Epoch != epoch || got.Generation != epoch+1 || got.State != messages.InstanceOpen || got.Principal != asked.Principal ||
			got.Operation != (messages.OperationRef{}) {
			t.Errorf("process %d is %+v", epoch, got)
		}
		if (epoch == 0) != (got.RegistrationRevision == 0) || (epoch > 0 && got.RegistrationRevision <= revision) {
			t.Errorf("registration %d follows %d", got.RegistrationRevision, revision)
		}
		revision = got.RegistrationRevision
		gate, _ := standing(t, b)
		row, _, _ := b.Get(t.Context(), ledger.InstanceKey(asked.Endpoint, asked.Instance))
		if gate != got || row.Revision != done.Revision {
			t.Errorf("answered %+v at %d, and %+v stands at %d", got, done.Revision, gate, row.Revision)
		}
	}
	if e.calls != 0 {
		t.Error("somebody was evicted, though nothing was issued")
	}
}

func TestARegistrationEndsWhatWasIssued(t *testing.T) {
	b, e := memory.New(), &eviction{}
	first := register(t, b, e)
	for i := range 3 {
		mustIssue(t, b, first, fmt.Sprintf("c%d", i), []string{"x", "y", "x"}[i])
	}
	e.do = func() error {
		gate, credentials := standing(t, b)
		for id, c := range credentials {
			if c.State != ledger.CredentialRevoked {
				t.Errorf("%s is %s while its holder is evicted", id, c.State)
			}
		}
		if gate.State != messages.InstanceFrozen {
			t.Errorf("the gate is %s while holders are evicted", gate.State)
		}
		return nil
	}
	second := register(t, b, e)
	if second.Revoked != 3 || !slices.Equal(e.holders, []messages.Principal{principal("x"), principal("y")}) {
		t.Errorf("revoked %d, evicted %v", second.Revoked, e.holders)
	}
	if err := issue(t.Context(), b, first, "late", "x"); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("the former process is given something: %v", err)
	}
	mustIssue(t, b, second, "c3", "x")
	if _, credentials := standing(t, b); credentials["c3"].State != ledger.CredentialActive || credentials["c0"].State != ledger.CredentialRevoked {
		t.Errorf("credentials: %v", credentials)
	}
}

func TestAGateThatCannotBeClearedStaysShut(t *testing.T) {
	b, e := memory.New(), &eviction{}
	first := register(t, b, e)
	mustIssue(t, b, first, "c", "x")
	e.do = func() error { return messages.InstanceHeld }
	if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
		t.Fatalf("got %v", err)
	}
	if gate, _ := standing(t, b); gate.State != messages.InstanceFrozen || gate.Epoch != 0 {
		t.Errorf("the gate is %+v", gate)
	}
	if _, err := ledger.NewRegistrar(ledger.NewStore(b, brisk), nil, nil).Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
		t.Errorf("nobody to evict with: %v", err)
	}
	e.do = nil
	next := register(t, b, e)
	if next.Instance.Epoch != 1 || len(e.holders) != 1 {
		t.Errorf("the next one is %+v, and %v were evicted", next.Instance, e.holders)
	}
}

func TestWhoMayNotRegister(t *testing.T) {
	b, e := memory.New(), &eviction{}
	register(t, b, e)
	for what, c := range map[string]struct {
		spoil func(*messages.RegisterInstance)
		want  error
	}{
		"another principal":   {func(m *messages.RegisterInstance) { m.Principal = principal("other") }, messages.InstanceForeign},
		"an endpoint of two":  {func(m *messages.RegisterInstance) { m.Endpoint = "a.b" }, messages.Malformed},
		"an empty endpoint":   {func(m *messages.RegisterInstance) { m.Endpoint = "" }, messages.Malformed},
		"an instance by name": {func(m *messages.RegisterInstance) { m.Instance = "one" }, messages.Malformed},
		"nobody":              {func(m *messages.RegisterInstance) { m.Principal = messages.Principal{} }, messages.Malformed},
		"an unknown owner":    {func(m *messages.RegisterInstance) { m.Principal.Owner = "x" }, messages.Malformed},
		"an actor of two":     {func(m *messages.RegisterInstance) { m.Principal = messages.Principal{Owner: "local", Actor: "a.b"} }, messages.Malformed},
	} {
		ask := asked
		c.spoil(&ask)
		if _, err := registrar(b, e).Register(t.Context(), ask); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	own := messages.RegisterInstance{Endpoint: "auth", Instance: other, Principal: messages.Principal{Owner: "local", Actor: "auth"}}
	if _, err := registrar(b, e).Register(t.Context(), own); err != nil {
		t.Errorf("the infrastructure: %v", err)
	}
}

// TestTheNewerProcessWins lets another process register while holders are evicted.
func TestTheNewerProcessWins(t *testing.T) {
	b, e := memory.New(), &eviction{}
	first := register(t, b, e)
	mustIssue(t, b, first, "c", "x")
	var newer messages.InstanceRegistered
	e.do = func() error {
		newer = register(t, b, &eviction{})
		mustIssue(t, b, newer, "d", "x")
		return nil
	}
	if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("got %v", err)
	}
	gate, credentials := standing(t, b)
	if gate != newer.Instance || credentials["d"].State != ledger.CredentialActive {
		t.Errorf("the newer one has %+v, %v", gate, credentials)
	}
}

func TestReconcile(t *testing.T) {
	b, e := memory.New(), &eviction{}
	ask := messages.ReconcileInstance{Endpoint: asked.Endpoint, Instance: asked.Instance}
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, gone); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("before it is there: %v", err)
	}
	first := register(t, b, e)
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, gone); !errors.Is(err, messages.InstanceNotFrozen) || e.calls != 0 {
		t.Errorf("an open gate: %v", err)
	}
	if gate, _ := standing(t, b); gate != first.Instance {
		t.Errorf("an open gate was changed: %+v", gate)
	}
	mustIssue(t, b, first, "c", "x")
	e.do = func() error { return messages.InstanceHeld }
	for range 2 { // a registration that crashed, and a reconciliation that cannot finish
		if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, gone); !errors.Is(err, messages.InstanceHeld) {
		t.Errorf("while holders live: %v", err)
	}
	e.do = nil
	calls := e.calls
	before, _ := standing(t, b)
	alive := func(context.Context, messages.Instance) error { return messages.RegistrationAlive }
	if _, err := registrar(b, e).Reconcile(t.Context(), ask, alive); !errors.Is(err, messages.RegistrationAlive) || e.calls != calls {
		t.Errorf("while the registration lives: %v", err)
	}
	if after, _ := standing(t, b); after != before {
		t.Errorf("while the registration lives it was changed to %+v", after)
	}
	done, err := registrar(b, e).Reconcile(t.Context(), ask, gone)
	if err != nil || done.Instance.Epoch != 0 || done.Instance.Generation != 2 || done.Instance.State != messages.InstanceOpen {
		t.Errorf("reconciled %+v, %v", done.Instance, err)
	}
	if !slices.Equal(e.holders, []messages.Principal{principal("x"), asked.Principal}) {
		t.Errorf("evicted %v", e.holders)
	}
}

// gone is said of a registration that is over.
func gone(context.Context, messages.Instance) error { return nil }

// TestARepairGoesOnWhereTheRegistrationStopped cuts a registration at every write, and
// its repair at every write too.
func TestARepairGoesOnWhereTheRegistrationStopped(t *testing.T) {
	ask := messages.ReconcileInstance{Endpoint: asked.Endpoint, Instance: asked.Instance}
	setup := func(t *testing.T) *memory.Backend {
		b := memory.New()
		mustIssue(t, b, register(t, b, &eviction{}), "c", "x")
		return b
	}
	writes := func(b ledger.Backend, do func(ledger.Backend) error) int {
		counted := &flaky{Backend: b, plan: untroubled}
		if err := do(counted); err != nil {
			t.Fatal(err)
		}
		return counted.sends
	}
	registration := func(b ledger.Backend) error {
		_, err := registrar(b, &eviction{}).Register(t.Context(), asked)
		return err
	}
	repair := func(b ledger.Backend) error {
		_, err := registrar(b, &eviction{}).Reconcile(t.Context(), ask, gone)
		return err
	}
	for at := range writes(setup(t), registration) {
		for _, f := range []fate{diesBefore, diesAfter} {
			cut := func(t *testing.T) *memory.Backend {
				b := setup(t)
				if registration(&flaky{Backend: b, plan: nth(at, f)}) == nil {
					t.Fatal("the dead process answered")
				}
				return b
			}
			b := cut(t)
			if gate, _ := standing(t, b); gate.State == messages.InstanceOpen {
				if err := repair(b); !errors.Is(err, messages.InstanceNotFrozen) {
					t.Errorf("write %d, %s: an open gate: %v", at, f, err)
				}
				continue
			}
			for repairedAt := range writes(cut(t), repair) {
				for _, g := range []fate{diesBefore, diesAfter} {
					t.Run(fmt.Sprintf("write %d: %s, write %d of the repair: %s", at, f, repairedAt, g), func(t *testing.T) {
						b := cut(t)
						if repair(&flaky{Backend: b, plan: nth(repairedAt, g)}) == nil {
							t.Fatal("the dead process answered")
						}
						if err := repair(b); err != nil && !errors.Is(err, messages.InstanceNotFrozen) {
							t.Fatal(err)
						}
						gate, credentials := standing(t, b)
						if gate.State != messages.InstanceOpen || gate.Epoch != 0 || gate.Generation != 2 || credentials["c"].State != ledger.CredentialRevoked {
							t.Errorf("repaired to %+v, %v", gate, credentials)
						}
					})
				}
			}
		}
	}
}

// A repair of a registration that was not over after all: one of the two wins.
func TestARepairRacesItsRegistration(t *testing.T) {
	b, e := memory.New(), &eviction{}
	mustIssue(t, b, register(t, b, e), "c", "x")
	e.do = func() error {
		_, err := registrar(b, &eviction{}).Reconcile(t.Context(), messages.ReconcileInstance{Endpoint: asked.Endpoint, Instance: asked.Instance}, gone)
		return err
	}
	if _, err := registrar(b, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("got %v", err)
	}
	if gate, _ := standing(t, b); gate.State != messages.InstanceOpen || gate.Epoch != 0 {
		t.Errorf("the gate is %+v", gate)
	}
}

// The gate tells over whose connection it was frozen, and nobody else's.
func TestAFrozenGateNamesWhoFrozeIt(t *testing.T) {
	b, e := memory.New(), &eviction{}
	mustIssue(t, b, register(t, b, e), "c", "x")
	e.do = func() error { return messages.InstanceHeld }
	if _, err := registrar(b, e).Over("UA").Register(t.Context(), asked); !errors.Is(err, messages.InstanceHeld) {
		t.Fatal(err)
	}
	gate, _ := standing(t, b)
	if !ledger.FrozenBy(gate, "UA") || ledger.FrozenBy(gate, "UB") || ledger.FrozenBy(gate, "") {
		t.Errorf("frozen by another than %+v says", gate)
	}
	e.do = nil
	if opened := register(t, b, e); ledger.FrozenBy(opened.Instance, "UA") {
		t.Error("an open gate is frozen by somebody")
	}
}

// Whoever is connected as the instance's principal goes with the process before.
func TestAHostsFormerProcessIsEvicted(t *testing.T) {
	b, e := memory.New(), &eviction{}
	for epoch := range 3 {
		e.holders = nil
		if _, err := registrar(b, e).Hosting().Register(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		if evicted := slices.Equal(e.holders, []messages.Principal{asked.Principal}); evicted != (epoch > 0) {
			t.Errorf("process %d: evicted %v", epoch, e.holders)
		}
	}
}

// Gates are listed by endpoint or all, and one that cannot be read hides no other.
func TestInstancesAreListed(t *testing.T) {
	b := memory.New()
	reader := ledger.NewReader(b, nil)
	var names []string
	for _, ask := range []messages.RegisterInstance{
		{Endpoint: "svc_b", Instance: uid, Principal: principal("svc")}, {Endpoint: "svc_a", Instance: other, Principal: principal("svc")}, asked,
	} {
		if _, err := registrar(b, &eviction{}).Register(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	all, err := reader.Instances(t.Context(), messages.ListInstances{})
	for _, i := range all.Items {
		names = append(names, i.Endpoint+" "+i.Name)
	}
	if err != nil || len(names) != 3 || !slices.IsSorted(names) {
		t.Errorf("got %v, %v", names, err)
	}
	row, _, _ := b.Get(t.Context(), ledger.InstanceKey("svc_a", other))
	if _, err := ledger.NewStore(b, brisk).Apply(t.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, []byte("junk"))}}); err != nil {
		t.Fatal(err)
	}
	some, err := reader.Instances(t.Context(), messages.ListInstances{Endpoint: "svc_a"})
	if err != nil || len(some.Items) != 1 || some.Items[0].Name != uid || !slices.Equal(some.Unreadable, []string{row.Key}) {
		t.Errorf("got %+v, %v", some, err)
	}
	if _, err := reader.Instances(t.Context(), messages.ListInstances{Endpoint: "*"}); !errors.Is(err, messages.Malformed) {
		t.Errorf("an endpoint that is a pattern: %v", err)
	}
	if one, err := reader.Instance(t.Context(), messages.ReadInstance{Endpoint: "svc_b", Instance: uid}); err != nil || one.Endpoint != "svc_b" {
		t.Errorf("got %+v, %v", one, err)
	}
	if _, err := reader.Instance(t.Context(), messages.ReadInstance{Endpoint: "svc_c", Instance: uid}); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("one that never registered: %v", err)
	}
}

// TestARegistrationCutAnywhere cuts a registration at every write in every way.
func TestARegistrationCutAnywhere(t *testing.T) {
	setups := map[string]func(*testing.T, *memory.Backend){
		"the first": func(*testing.T, *memory.Backend) {},
		"a later one": func(t *testing.T, b *memory.Backend) {
			first := register(t, b, &eviction{})
			mustIssue(t, b, first, "c", "x")
		},
	}
	for name, setup := range setups {
		clean := memory.New()
		setup(t, clean)
		counted := &flaky{Backend: clean, plan: untroubled}
		register(t, counted, &eviction{})
		for at := range counted.sends {
			for _, f := range append(slices.Clone(survived), diesBefore, diesAfter) {
				t.Run(fmt.Sprintf("%s, write %d: %s", name, at, f), func(t *testing.T) {
					b := memory.New()
					setup(t, b)
					before := uint64(0)
					if name != "the first" {
						before = 1
					}
					done, err := registrar(&flaky{Backend: b, plan: nth(at, f)}, &eviction{}).Register(t.Context(), asked)
					dies := f == diesBefore || f == diesAfter
					switch {
					case dies && err == nil:
						t.Error("the dead process answered")
					case !dies && (err != nil || done.Instance.Epoch != before):
						t.Errorf("told %+v, %v", done.Instance, err)
					}
					next := register(t, b, &eviction{})
					gate, credentials := standing(t, b)
					if gate != next.Instance || gate.Epoch > before+1 || gate.Epoch < before {
						t.Errorf("after the next one the gate is %+v", gate)
					}
					if c, issued := credentials["c"]; issued && c.State != ledger.CredentialRevoked {
						t.Error("what was issued before is still good")
					}
				})
			}
		}
	}
}

// TestRegistrationsInterleaved registers several processes at once, each of which
// is then issued something, call by call in any order.
func TestRegistrationsInterleaved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		many := rapid.IntRange(2, 4).Draw(rt, "processes")
		schedule := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 120).Draw(rt, "schedule")
		fates := rapid.SliceOfN(rapid.SampledFrom(append([]fate{answered, answered}, survived...)), 0, 10).Draw(rt, "fates")
		if err := registerAtOnce(t, many, schedule, fates); err != nil {
			rt.Fatal(err)
		}
	})
}

func registerAtOnce(t *testing.T, many int, schedule []int, fates []fate) (complaint error) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		mustIssue(t, b, register(t, b, &eviction{}), "c-first", "x")
		gate := &turnstile{backend: &flaky{Backend: b, plan: script(fates...)}}
		done := make([]messages.InstanceRegistered, many)
		told := letThrough(gate, schedule, many, func(i int) (err error) {
			through := entrance{gate, i}
			done[i], err = ledger.NewRegistrar(ledger.NewStore(through, steady), (&eviction{}).evict, nil).Register(t.Context(), asked)
			if err == nil {
				_ = issue(t.Context(), b, done[i], fmt.Sprintf("c%d", i), "x") // refused if it was superseded since
			}
			return err
		})
		last := uint64(0)
		epochs := map[uint64]bool{}
		for i, err := range told {
			switch epoch := done[i].Instance.Epoch; {
			case err == nil && (epochs[epoch] || epoch == 0):
				complaint = fmt.Errorf("two processes have epoch %d", epoch)
			case err == nil:
				epochs[epoch] = true
				last = max(last, epoch)
			case !errors.Is(err, messages.InstanceSuperseded):
				complaint = err
			}
		}
		now, credentials := standing(t, b)
		if now.State != messages.InstanceOpen || now.Epoch != last {
			complaint = fmt.Errorf("the gate is %+v, and the last epoch told was %d", now, last)
		}
		for id, c := range credentials {
			if (c.State == ledger.CredentialActive) && c.Epoch != last {
				complaint = fmt.Errorf("%s of epoch %d is good beside epoch %d", id, c.Epoch, last)
			}
		}
	})
	return complaint
}

// before is a backend under which something happens when rows are listed.
type before struct {
	ledger.Backend
	list func()
}

func (b before) List(ctx context.Context, filter string) ([]string, error) {
	b.list()
	return b.Backend.List(ctx, filter)
}

// TestASupersededProcessRevokesNothing pauses a process behind its freeze until a
// newer one has registered and was issued something.
func TestASupersededProcessRevokesNothing(t *testing.T) {
	b := memory.New()
	mustIssue(t, b, register(t, b, &eviction{}), "c", "x")
	slow := before{Backend: b, list: func() { mustIssue(t, b, register(t, b, &eviction{}), "d", "x") }}
	e := &eviction{}
	if _, err := registrar(slow, e).Register(t.Context(), asked); !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("got %v", err)
	}
	if _, credentials := standing(t, b); credentials["d"].State != ledger.CredentialActive {
		t.Error("what the newer process was issued is revoked")
	}
	if e.calls != 0 {
		t.Error("a superseded process evicted")
	}
}
