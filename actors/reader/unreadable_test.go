package reader

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func TestUnreadableRowsAreShownUntilTheyAreRead(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	p := messages.Principal{Owner: "u_a", Actor: "p"}
	var u Unreadable
	if got := u.Problems(); got == nil || len(got) != 0 {
		t.Errorf("nothing was met: %#v", got)
	}
	u.Met(log, ledger.GrantKey(p), ledger.HeadKey(p))
	u.Met(log, ledger.GrantKey(p))
	if got := u.Problems(); len(got) != 1 || !strings.Contains(got[0], ": 2, and") || !strings.Contains(got[0], "grant.u_a.p, head.u_a.p") {
		t.Errorf("got %q", got)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines in the log: %s", n, out.String())
	}
	u.read(messages.Authority{Grant: messages.Grant{Principal: p}, HasGrant: true})
	if u.Count() != 1 {
		t.Errorf("the grant was read, and %q is shown", u.Problems())
	}
	u.read(messages.Authority{Head: messages.Head{Principal: p}, HasHead: true})
	if u.Count() != 0 {
		t.Errorf("the head was read, and %q is shown", u.Problems())
	}
}

func TestUnreadableRowsAreBounded(t *testing.T) {
	var u Unreadable
	var grants []messages.Grant
	for i := range keptUnreadable + 1 {
		p := messages.Principal{Owner: "u_a", Actor: fmt.Sprint("m", i)}
		grants = append(grants, messages.Grant{Principal: p})
		u.Met(slog.New(slog.DiscardHandler), ledger.GrantKey(p))
	}
	if u.Count() != keptUnreadable || len(u.Problems()[0]) > 300 {
		t.Errorf("%d are kept, shown as %q", u.Count(), u.Problems())
	}
	u.listed(grants)
	if u.Count() != 0 {
		t.Errorf("%d are left after all were read", u.Count())
	}
}

// A key that nobody of ours wrote cannot write lines into a terminal.
func TestUnreadableKeysAreShownPlainly(t *testing.T) {
	var u Unreadable
	u.Met(slog.New(slog.DiscardHandler), "grant.x.\x1b[2J\nfine")
	if got := u.Problems()[0]; strings.ContainsAny(got, "\x1b\n") {
		t.Errorf("got %q", got)
	}
}
