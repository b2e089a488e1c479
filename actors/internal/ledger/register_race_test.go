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
				ask := issuing(done[i], fmt.Sprintf("c%d", i), "x")
				_, _ = ledger.NewIssuer(ledger.NewStore(through, steady), ledger.Options{Now: fixedClock}).Issue(t.Context(), ask) // refused if it was superseded since
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
