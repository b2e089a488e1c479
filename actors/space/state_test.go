package space

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// What a killed process was about to put in place is swept by the next one; nothing
// else in the directory is touched.
func TestAStartSweepsWhatAKilledOneLeft(t *testing.T) {
	dir := t.TempDir()
	leftovers := []string{".service.json.791680265", ".capability.1", ".instance.22", ".installation.json.3", ".records-installation.json.4"}
	others := []string{".capability", ".capability.", ".capability.1x", ".notes.1", "capability.1", "service.json", ".service.json.1.bak"}
	for _, name := range slices.Concat(leftovers, others) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state, err := openStateDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range leftovers {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for _, name := range others {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Whoever does not get the lock sweeps nothing of the one that has it.
	writing := filepath.Join(dir, ".capability.7")
	if err := os.WriteFile(writing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStateDir(dir); !errors.Is(err, messages.StateDirTaken) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := os.Lstat(writing); err != nil {
		t.Errorf("the second one swept: %v", err)
	}
	if err := state.release(); err != nil {
		t.Error(err)
	}
}
