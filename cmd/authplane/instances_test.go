package main

import (
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

const (
	frozenJSON = `{"endpoint":"svc_a","instance":"i1","state":"frozen","epoch":2,"generation":3,"owner":"u_a","actor":"svc","held_by":"g1"}`
	openedJSON = `{"endpoint":"svc_a","instance":"i1","state":"open","epoch":2,"generation":4,"owner":"u_a","actor":"svc","held_by":"","revoked":5}`
)

func TestInstancesAreShownAndRepaired(t *testing.T) {
	all := `{"instances":[` + frozenJSON + `],"unreadable":[]}`
	d := newDouble(t, map[string]answer{
		"GET /v1/instances": {200, all}, "GET /v1/instances/svc_a": {200, all}, "POST /v1/repair": {200, openedJSON},
	})
	for _, test := range []struct {
		line, json string
		want       []string
	}{
		{"instances", all, []string{"ENDPOINT", "svc_a", "i1", "frozen", "2", "u_a/svc", "registration g1"}},
		{"instances svc_a", all, []string{"svc_a"}},
		{"repair svc_a i1", openedJSON, []string{"opened i1 of svc_a at epoch 2; 5 credentials revoked"}},
	} {
		got := d.command(t, strings.Fields(test.line)...)
		for _, want := range test.want {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("%s: exit %d, %q is not in:\n%s%s", test.line, got.code, want, got.out, got.err)
			}
		}
		if got := d.command(t, append(strings.Fields(test.line), "--json")...); got.code != 0 || got.out != test.json+"\n" {
			t.Errorf("%s: exit %d, JSON:\n%s", test.line, got.code, got.out)
		}
	}
}

// A repair that changed nothing never exits with 0, and nothing forces one.
func TestARepairThatChangedNothing(t *testing.T) {
	for _, e := range []messages.Error{messages.InstanceNotFrozen, messages.InstanceNotFound, messages.RegistrationAlive,
		messages.RegistrationUnknown, messages.InstanceHeld, messages.InstanceSuperseded} {
		d := newDouble(t, map[string]answer{"POST /v1/repair": refusal(e.Code.HTTPStatus(), string(e.Code), e.Reason)})
		if got := d.command(t, "repair", "svc_a", "i1"); got.code != e.Code.ExitCode() || got.code == 0 || got.out != "" {
			t.Errorf("%s: exit %d\n%s", e.Reason, got.code, got.out)
		}
	}
	d := newDouble(t, nil)
	for _, line := range []string{"repair", "repair svc_a", "repair svc_a i1 x", "repair --force svc_a i1", "instances a b"} {
		if got := d.command(t, strings.Fields(line)...); got.code != messages.ExitUsage {
			t.Errorf("%s: exit %d", line, got.code)
		}
	}
}
