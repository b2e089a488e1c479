package run_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/messages"
)

// Each row is read as it was written, at its own key; nothing else is.
func TestRowsAreReadToTheLetter(t *testing.T) {
	r := newRig(t)
	r.admitted(runA)
	if _, err := r.reserve(r.attempt(1), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.desk.Revoke(t.Context(), messages.RevokeRun{Endpoint: jobs, Run: runA, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	for key, decode := range map[string]func(ledger.Row) error{
		run.AdmissionKey(jobs, runA):  func(r ledger.Row) error { _, err := run.DecodeAdmission(r); return err },
		run.RevocationKey(jobs, runA): func(r ledger.Row) error { _, err := run.DecodeRevocation(r); return err },
		run.AttemptKey(jobs, runA, 1): func(r ledger.Row) error { _, err := run.DecodeAttempt(r); return err },
	} {
		row, found, err := r.rows.Get(t.Context(), key)
		if err != nil || !found || decode(row) != nil {
			t.Fatalf("%s: %v, %v", key, err, decode(row))
		}
		was := string(row.Value)
		body := strings.TrimSuffix(was, "}")
		for what, value := range map[string]string{
			"an unknown field": body + `,"x":1}`, "a field twice": body + `,"v":1}`, "something behind": was + " ", "another version": strings.Replace(was, `"v":1`, `"v":2`, 1),
			"another order": strings.Replace(was, `{"v":1,`, "{", 1)[:len(was)-7] + `,"v":1}`, "a missing field": strings.Replace(was, `"endpoint":"jobs",`, "", 1),
			"another run": strings.Replace(was, runA, runB, 1), "another endpoint": strings.Replace(was, `"jobs"`, `"Jobs"`, 1), "no witness": strings.Replace(was, `"w":"`, `"w":"X`, 1),
		} {
			if err := decode(ledger.Row{Key: key, Value: []byte(value), Revision: 1}); !errors.Is(err, messages.RowCorrupt) {
				t.Errorf("%s with %s: %v", key, what, err)
			}
		}
	}
}
