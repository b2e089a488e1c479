package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// overwrite puts a row where it stands, as no transition of ours would.
func (w *world) overwrite(key string, value []byte, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	row, _, _ := w.backend.Get(w.Context(), key)
	row.Key = key
	if _, err := w.backend.Send(w.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Replace(row, value)}}); err != nil {
		w.Fatal(err)
	}
}

// gate puts p's gate into a state, as an operation would.
func (w *world) gate(state messages.HeadState, kind string) {
	w.Helper()
	head := w.authority("p").Head
	head.State = state
	if kind != "" {
		head.Operation = messages.OperationRef{ID: other, Kind: kind}
	}
	value, err := ledger.EncodeHead(head)
	w.overwrite(ledger.HeadKey(head.Principal), value, err)
}

func lived(t *testing.T) *world {
	w := freshWorld(t)
	w.put("p", "")
	w.enrol()
	return w
}

func (w *world) tryEnrol() error {
	_, err := w.steady().Enrol(w.Context(), messages.Enrol{Principal: principal("p"), UID: w.uid})
	return err
}

func TestNothingIsIssuedThroughAShutGate(t *testing.T) {
	for state, c := range map[messages.HeadState]struct {
		kind string
		want error
	}{
		messages.HeadFrozen:   {ledger.KindTakeover, messages.GateShut},
		messages.HeadRetiring: {ledger.KindRetirement, messages.GateShut},
		messages.HeadRetired:  {"", messages.IncarnationEnded},
	} {
		w := lived(t)
		w.gate(state, c.kind)
		if err := w.tryEnrol(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", state, err)
		}
		_, _, err := w.holder(w.backend).BeginTakeover(t.Context(), messages.BeginTakeover{ID: uid, Principal: principal("p"), UID: w.uid, By: "x"})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: begun: %v", state, err)
		}
	}
}

func TestNamesThatAreTaken(t *testing.T) {
	reserve := func(w *world, actor string) {
		value, err := ledger.EncodeReservation(ledger.Reservation{UID: w.uid, Principal: principal(actor), By: "x"})
		w.overwrite(ledger.UIDKey(w.uid), value, err)
	}
	w := freshWorld(t)
	w.put("p", "")
	reserve(w, "q")
	if err := w.tryEnrol(); !errors.Is(err, messages.IncarnationEnded) {
		t.Errorf("a name of another's: %v", err)
	}
	// He is not stuck: a new grant brings a new name.
	w.revoke()
	w.put("p", "")
	w.enrol()

	w = freshWorld(t)
	w.put("p", "")
	reserve(w, "p")
	if err := w.tryEnrol(); !errors.Is(err, messages.RowCorrupt) {
		t.Errorf("a name of his own that no head bears: %v", err)
	}
	if err := ledger.CheckInvariants(t.Context(), w.backend); err == nil {
		t.Error("the invariants do not see it")
	}
}

func TestDamageIsRefusedEverywhere(t *testing.T) {
	garbled := func(key string) func(*world) {
		return func(w *world) { w.overwrite(key, []byte(`{"v":1}`), nil) }
	}
	marked := func(key string) func(*world) { return func(w *world) { w.backend.Mark(key) } }
	grant, head := ledger.GrantKey(principal("p")), ledger.HeadKey(principal("p"))
	for name, damage := range map[string]func(*world){
		"a garbled grant": garbled(grant), "a deleted grant": marked(grant),
		"a garbled head": garbled(head), "a deleted head": marked(head),
	} {
		w := lived(t)
		damage(w)
		_, readErr := ledger.NewReader(w.backend, nil).Authority(t.Context(), messages.ReadAuthority{Principal: principal("p"), Head: true})
		_, putErr := w.steady().PutGrant(t.Context(), put("p", ""))
		_, revokeErr := w.steady().RevokeGrant(t.Context(), messages.RevokeGrant{Principal: principal("p"), By: "x"})
		for what, err := range map[string]error{"read": readErr, "exchange": w.tryEnrol(), "revoke": revokeErr} {
			if !errors.Is(err, messages.RowCorrupt) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if putErr == nil {
			t.Errorf("%s: granted over it", name)
		}
		if strings.Contains(name, "grant") {
			all, err := ledger.NewReader(w.backend, nil).Grants(t.Context())
			if err != nil || len(all.Items) != 0 || !slices.Equal(all.Unreadable, []string{grant}) {
				t.Errorf("%s, list: %+v, %v", name, all, err)
			}
		}
		if err := ledger.CheckInvariants(t.Context(), w.backend); !errors.Is(err, messages.RowCorrupt) {
			t.Errorf("%s, invariants: %v", name, err)
		}
	}
}

// TestInvariantsSeeWhatCannotBe breaks a sound ledger in each way it could break.
func TestInvariantsSeeWhatCannotBe(t *testing.T) {
	encodeGrant := func(w *world, change func(*messages.Grant)) {
		g := w.authority("p").Grant
		change(&g)
		value, err := ledger.EncodeGrant(g, other)
		w.overwrite(ledger.GrantKey(g.Principal), value, err)
	}
	for name, spoil := range map[string]func(*world){
		"revoked, and the head stands": func(w *world) {
			encodeGrant(w, func(g *messages.Grant) { g.State = messages.GrantRevoked })
		},
		"live, and the head is over": func(w *world) { w.gate(messages.HeadRetired, "") },
		"a grant for another life":   func(w *world) { encodeGrant(w, func(g *messages.Grant) { g.UID = uid }) },
		"a name without a head": func(w *world) {
			value, err := ledger.EncodeReservation(ledger.Reservation{UID: uid, Principal: principal("q"), By: "x"})
			w.overwrite(ledger.UIDKey(uid), value, err)
		},
		"a head without a name": func(w *world) {
			w.put("q", "")
			value, err := ledger.EncodeHead(messages.Head{Principal: principal("q"), UID: w.authority("q").Grant.UID, Epoch: 1, Generation: 1, State: messages.HeadActive})
			w.overwrite(ledger.HeadKey(principal("q")), value, err)
		},
		"a root of two": func(w *world) {
			w.put("q", "")
			granted := w.authority("q").Grant.UID
			if _, err := w.steady().Enrol(w.Context(), messages.Enrol{Principal: principal("q"), UID: granted}); err != nil {
				w.Fatal(err)
			}
			head := w.authority("q").Head
			head.Root = w.authority("p").Head.Root
			value, err := ledger.EncodeHead(head)
			w.overwrite(ledger.HeadKey(principal("q")), value, err)
		},
		"a head without a grant": func(w *world) {
			value, err := ledger.EncodeHead(messages.Head{Principal: principal("q"), UID: uid, Epoch: 1, Generation: 1, State: messages.HeadRetired})
			w.overwrite(ledger.HeadKey(principal("q")), value, err)
			value, err = ledger.EncodeReservation(ledger.Reservation{UID: uid, Principal: principal("q"), By: "x"})
			w.overwrite(ledger.UIDKey(uid), value, err)
		},
	} {
		w := lived(t)
		w.holds()
		spoil(w)
		if err := ledger.CheckInvariants(t.Context(), w.backend); err == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

func TestReadChainEndsWhereItDoesNotHold(t *testing.T) {
	w := freshWorld(t)
	w.put("a0", "")
	for i := 1; i <= 34; i++ { // by hand: nobody may grant so deep
		g := w.authority("a0").Grant
		g.Principal, g.Parent, g.UID = principal(fmt.Sprint("a", i)), principal(fmt.Sprint("a", i-1)), strings.Repeat("z", 26)
		value, err := ledger.EncodeGrant(g, other)
		w.overwrite(ledger.GrantKey(g.Principal), value, err)
	}
	if chain := w.authority("a34").Chain; len(chain) != 32 {
		t.Errorf("34 deep: %d read", len(chain))
	}
	if chain := w.authority("a3").Chain; len(chain) != 3 || chain[2].Principal.Actor != "a0" {
		t.Errorf("3 deep: %+v", chain)
	}
	g := w.authority("a0").Grant
	g.Parent = principal("a2")
	value, err := ledger.EncodeGrant(g, other)
	w.overwrite(ledger.GrantKey(g.Principal), value, err)
	if chain := w.authority("a2").Chain; len(chain) != 2 {
		t.Errorf("a cycle: %+v", chain)
	}
	g.Parent = principal("nobody")
	value, err = ledger.EncodeGrant(g, other)
	w.overwrite(ledger.GrantKey(g.Principal), value, err)
	if chain := w.authority("a2").Chain; len(chain) != 2 {
		t.Errorf("a missing parent: %+v", chain)
	}
}
