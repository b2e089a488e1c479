package main

import (
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

func TestControllersAreShown(t *testing.T) {
	of := func(rest string) string {
		return `{"endpoint":"runner","instance":"i1","owner":"u_a","actor":"ctl_i1","state":"open",` + rest + `}`
	}
	all := `{"controllers":[` + of(`"epoch":4,"prepared":4,"activated":true,"live":5,"expires_at":"2026-05-01T13:00:00Z"`) + `,` +
		of(`"epoch":4,"prepared":4,"activated":false,"live":2,"expires_at":""`) + `,` +
		of(`"epoch":5,"prepared":4,"activated":true,"live":0,"expires_at":""`) + `],"unreadable":["ctl.a.b"]}`
	d := newDouble(t, map[string]answer{"GET /v1/controllers": {200, all}})
	got := d.command(t, "controllers")
	for _, want := range []string{"FIRST RUNS OUT", "runner", "i1", "u_a", "open", "activated", "prepared", "has not come yet", "2026-05-01T13:00:00Z"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("exit %d, %q is not in:\n%s%s", got.code, want, got.out, got.err)
		}
	}
	if !strings.Contains(got.err, "ctl.a.b cannot be read") {
		t.Errorf("it says %s", got.err)
	}
	if got := d.command(t, "controllers", "--json"); got.code != 0 || got.out != all+"\n" {
		t.Errorf("exit %d, JSON:\n%s", got.code, got.out)
	}
	if got := d.command(t, "controllers", "x"); got.code != messages.ExitUsage {
		t.Errorf("exit %d", got.code)
	}
}
