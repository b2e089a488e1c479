package main

import (
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

const shownRun = `{"endpoint":"jobs","run":"run-00000000000000000000000000000001","instance":"i1","owner":"u_a","actor":"laptop","uid":"x",` +
	`"publish":["demo.>"],"subscribe":[],"witness":"signature","admitted_at":"2026-05-01T13:00:00Z",` +
	`"revoked":{"by":"operator","reason":"enough","at":"2026-05-01T14:00:00Z"}`

func TestRunsAreShown(t *testing.T) {
	const run = "run-00000000000000000000000000000001"
	all := `{"runs":[` + shownRun + `}],"unreadable":["admission.a.b"]}`
	one := shownRun + `,"attempts":[{"attempt":7,"epoch":4,"takeover":"t7","driver":"U","mediator":"U","reserved_at":"2026-05-01T13:01:00Z","expires_at":"2026-05-01T13:31:00Z"}]}`
	revoked := `{"endpoint":"jobs","run":"` + run + `","by":"operator","reason":"enough","at":"2026-05-01T14:00:00Z"}`
	d := newDouble(t, map[string]answer{"GET /v1/runs": {200, all}, "GET /v1/runs/jobs": {200, all}, "GET /v1/runs/jobs/" + run: {200, one},
		"POST /v1/runs/jobs/" + run + "/revoke": {200, revoked}})
	for _, c := range []struct {
		args []string
		want []string
		json string
	}{
		{[]string{"runs"}, []string{"STARTED BY", "u_a/laptop", run, "2026-05-01T14:00:00Z by operator"}, all},
		{[]string{"runs", "list", "jobs"}, []string{run}, all},
		{[]string{"runs", "show", "jobs", run}, []string{"demo.>", "t7", "7", "shown by signature", "enough"}, one},
		{[]string{"runs", "revoke", "jobs", run, "--reason", "enough"}, []string{"revoked " + run, "operator: enough"}, revoked},
	} {
		got := d.command(t, c.args...)
		for _, want := range c.want {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("%v: exit %d, %q is not in:\n%s%s", c.args, got.code, want, got.out, got.err)
			}
		}
		if got := d.command(t, append(c.args, "--json")...); got.code != 0 || got.out != c.json+"\n" {
			t.Errorf("%v: exit %d, JSON:\n%s%s", c.args, got.code, got.out, got.err)
		}
	}
	for _, args := range [][]string{{"runs", "a", "b"}, {"runs", "show", "jobs"}, {"runs", "revoke", "jobs"}} {
		if got := d.command(t, args...); got.code != messages.ExitUsage {
			t.Errorf("%v: exit %d", args, got.code)
		}
	}
	if got := d.command(t, "runs"); !strings.Contains(got.err, "admission.a.b cannot be read") {
		t.Errorf("it says %s", got.err)
	}
}
