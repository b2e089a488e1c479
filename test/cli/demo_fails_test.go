package cli

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A demo that runs out of files before anything is up says at which step, and fails.
func TestADemoThatFails(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `ulimit -n 10; exec "$0" demo --json`, filepath.Join(bin, "authplane"))
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	_ = cmd.Run() // its code says how it ended
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var step struct {
		Step string `json:"step"`
		OK   bool   `json:"ok"`
		Told string `json:"told"`
	}
	err := json.Unmarshal([]byte(lines[len(lines)-1]), &step)
	if code := cmd.ProcessState.ExitCode(); code != 1 || err != nil || len(lines) != 1 || step.Step != "boot" || step.OK || step.Told == "" {
		t.Errorf("exit %d, %v\n%s", code, err, out.String())
	}
	if said := talk.String(); !strings.Contains(said, "demo: boot: ") {
		t.Errorf("said %s", said)
	}
}
