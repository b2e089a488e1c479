package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// A row that cannot be read hides itself alone.
func TestOneUnreadableGrantHidesNobodyElse(t *testing.T) {
	for name, damage := range damages() {
		w := offspring(t)
		damage(w, ledger.GrantKey(principal("b")))
		all, err := ledger.NewReader(w.backend, w.now).Grants(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var actors []string
		for _, g := range all.Items {
			actors = append(actors, g.Principal.Actor)
		}
		if !slices.Equal(actors, []string{"a", "c", "d", "p"}) || !slices.Equal(all.Unreadable, []string{ledger.GrantKey(principal("b"))}) {
			t.Errorf("%s: %v, and unreadable %v", name, actors, all.Unreadable)
		}
	}
}

// Revoking a family ends everybody whose rows can be read, and names the others.
func TestOneUnreadableRowStopsNobodyElsesEnd(t *testing.T) {
	for name, damage := range damages() {
		for _, key := range []string{ledger.GrantKey(principal("b")), ledger.HeadKey(principal("b"))} {
			w := offspring(t)
			before, _, _ := w.backend.Get(t.Context(), key)
			damage(w, key)
			_, err := w.steady().RevokeGrant(t.Context(), messages.RevokeGrant{Principal: principal("p"), By: "x"})
			if !errors.Is(err, messages.RowCorrupt) || !slices.Equal(ledger.CorruptKeys(err), []string{key}) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s, %s: got %v, which names %v", name, key, err, ledger.CorruptKeys(err))
			}
			if text := messages.PublicText(err); text != messages.RowCorrupt.Message {
				t.Errorf("%s, %s: the caller is told %q", name, key, text)
			}
			for _, actor := range []string{"p", "a", "c", "d"} {
				if g := w.authority(actor).Grant; g.State != messages.GrantRevoked {
					t.Errorf("%s, %s: %s is %s", name, key, actor, g.State)
				}
			}
			if name == "deleted" {
				continue // a marker cannot be written over as a row is
			}
			w.overwrite(key, before.Value, nil)
			w.revoke()
			if g := w.authority("b").Grant; g.State != messages.GrantRevoked {
				t.Errorf("%s, %s: asked again once it could be read, b is %s", name, key, g.State)
			}
			w.holds()
		}
	}
}

// damages are the ways in which a row becomes unreadable.
func damages() map[string]func(*world, string) {
	return map[string]func(*world, string){
		"junk":    func(w *world, key string) { w.overwrite(key, []byte("junk"), nil) },
		"alien":   func(w *world, key string) { w.overwrite(key, []byte(`{"v":2}`), nil) },
		"deleted": func(w *world, key string) { w.backend.Mark(key) },
	}
}

// offspring is p with the machines a, b and c, and d below c, who all exchanged.
func offspring(t *testing.T) *world {
	w := freshWorld(t)
	for _, child := range [][2]string{{"p", ""}, {"a", "p"}, {"b", "p"}, {"c", "p"}, {"d", "c"}} {
		made, err := w.steady().PutGrant(t.Context(), put(child[0], child[1]))
		if err == nil {
			_, err = w.steady().Enrol(t.Context(), messages.Enrol{Principal: made.Principal, UID: made.UID})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}
