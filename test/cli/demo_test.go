package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	got := authplane(t, "demo", "--json")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != 0 || len(lines) < 10 {
		t.Fatalf("exit %d\n%s%s", got.code, got.out, got.err)
	}
	for _, line := range lines {
		var step struct {
			OK bool `json:"ok"`
		}
		if err := json.Unmarshal([]byte(line), &step); err != nil || !step.OK {
			t.Errorf("%v in %s", err, line)
		}
	}
}
