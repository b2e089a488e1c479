package operation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/operation"
	"github.com/cotal-ai/authplane/messages"
)

var (
	handle = ledger.Handle{Issuer: "k1", ID: "h1"}
	robot  = messages.Principal{Owner: laptop.Owner, Actor: "robot"}
)

// lineage has laptop and robot derive credentials from a handle, and robot one of
// another's.
func (w *world) lineage() {
	w.Helper()
	writer := w.writer()
	made, err := writer.PutGrant(w.Context(), messages.PutGrant{Principal: robot, Kind: messages.Interactive, By: "x"})
	w.must(err)
	for p, uid := range map[messages.Principal]string{laptop: w.uid, robot: made.UID} {
		root, err := writer.Enrol(w.Context(), messages.Enrol{Principal: p, UID: uid})
		w.must(err)
		for i := range 3 {
			_, err := writer.MintDescendant(w.Context(), ledger.MintDescendant{Principal: p, UID: uid, Root: root.CredentialID,
				ID: fmt.Sprintf("h%d", i), Handles: []ledger.Handle{handle}, Expires: time.Now().Add(time.Hour)})
			w.must(err)
		}
		_, err = writer.MintDescendant(w.Context(), ledger.MintDescendant{Principal: p, UID: uid, Root: root.CredentialID,
			ID: "other", Handles: []ledger.Handle{{Issuer: "k1", ID: "h2"}}, Expires: time.Now().Add(time.Hour)})
		w.must(err)
	}
}

// renewals notes who was judged anew.
type renewals struct{ all [][]messages.Principal }

func (r *renewals) Renew(_ context.Context, p []messages.Principal) (int, error) {
	r.all = append(r.all, p)
	return len(p), nil
}

// revoked lists the credentials that are revoked.
func (w *world) revoked() (ids []string) {
	w.Helper()
	rows, err := w.backend.Scan(w.Context(), ledger.Scan{Filter: "cred.>"})
	w.must(err)
	for _, row := range rows {
		c, err := ledger.DecodeCredential(row)
		w.must(err)
		if c.State == ledger.CredentialRevoked {
			ids = append(ids, c.Holder.Actor+" "+c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestAHandleEndsWithItsLineage cuts the process at each write of a handle's end, and
// has it asked for again.
func TestAHandleEndsWithItsLineage(t *testing.T) {
	for _, how := range []string{"before", "after", "lost"} {
		for at := 2; ; at++ { // the first write is the claim
			w := newWorld(t)
			w.lineage()
			ctx, die := context.WithCancel(t.Context())
			line := &cut{Backend: w.backend, how: how, at: at, die: die}
			p, err := w.boot(ctx, line)
			w.must(err)
			_, err = operation.RevokeHandle(ctx, p.ports(), &renewals{}, handle)
			whole := line.sent < at
			if (err == nil) != (whole || how == "lost") {
				t.Fatalf("%s write %d: %v", how, at, err)
			}
			die()
			next, err := w.boot(t.Context(), w.backend)
			w.must(err)
			anew := &renewals{}
			done, err := operation.RevokeHandle(t.Context(), next.ports(), anew, handle)
			w.must(err)
			if done.Revoked != 6 || !slices.Equal(done.Holders, []messages.Principal{laptop, robot}) || done.Dropped != 2 || len(anew.all) != 1 {
				t.Errorf("%s write %d: %+v, judged anew %v", how, at, done, anew.all)
			}
			if got, want := w.revoked(), []string{"laptop h0", "laptop h1", "laptop h2", "robot h0", "robot h1", "robot h2"}; !slices.Equal(got, want) {
				t.Errorf("%s write %d: revoked are %q", how, at, got)
			}
			_, err = w.writer().MintDescendant(t.Context(), ledger.MintDescendant{Principal: laptop, UID: w.uid, Root: w.head().Root.ID,
				ID: "late", Handles: []ledger.Handle{handle}, Expires: time.Now().Add(time.Hour)})
			if !errors.Is(err, messages.HandleFrozen) {
				t.Errorf("%s write %d: derived from it after its end: %v", how, at, err)
			}
			w.must(ledger.CheckInvariants(context.Background(), w.backend))
			if whole {
				if at != 4 { // shut, revoked, and none after
					t.Errorf("%s: whole at %d", how, at)
				}
				break
			}
		}
	}
	w := newWorld(t)
	p, err := w.boot(t.Context(), w.backend)
	w.must(err)
	if _, err := operation.RevokeHandle(t.Context(), p.ports(), &renewals{}, handle); !errors.Is(err, messages.HandleNotFound) {
		t.Errorf("a handle that nothing was derived from: %v", err)
	}
}
