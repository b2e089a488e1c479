package issuer

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Whatever the gate and the time, the credential outlives every bearer of its season, can
// be recorded and named in a bearer, and is another one for another process or after a
// repair.
func TestTheCredentialOfAProcess(t *testing.T) {
	const largest = 1<<53 - 1
	rapid.Check(t, func(r *rapid.T) {
		gate := messages.Instance{Endpoint: "svc_a", Name: "aaaaaaaaaaaaaaaaaaaaaaaaaa", State: messages.InstanceOpen,
			Principal:  messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "svc"},
			Generation: rapid.Uint64Range(1, largest).Draw(r, "generation"), Epoch: rapid.Uint64Range(0, largest-1).Draw(r, "epoch")}
		now := time.UnixMilli(rapid.Int64Range(0, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()).Draw(r, "now"))
		c := credentialOf(gate, now)
		if left := c.Expires.Sub(now); left <= season || left > 2*season {
			r.Errorf("it has %s left", left)
		}
		if _, err := ledger.EncodeInstanceCredential(c); err != nil || len(c.ID) > 64 {
			r.Errorf("%s: %v", c.ID, err)
		}
		begins := c.Expires.Add(-2 * season)
		if first, last := credentialOf(gate, begins), credentialOf(gate, begins.Add(season-time.Millisecond)); first != c || last != c {
			r.Errorf("within a season it is %+v, %+v and %+v", first, c, last)
		}
		if credentialOf(gate, begins.Add(season)).ID == c.ID {
			r.Error("it is the same in the next season")
		}
		next, repaired := gate, gate
		next.Epoch++
		repaired.Generation++
		if credentialOf(next, now).ID == c.ID || credentialOf(repaired, now).ID == c.ID {
			r.Error("another process has the same")
		}
	})
}
