package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// dev runs only from what it made itself; of anything else it leaves everything as
// it was.
func TestDevLeavesOtherSpacesAlone(t *testing.T) {
	for _, part := range []string{"authplane.yaml", "secrets", "offline", "sentinel.creds", "nats-server.conf"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, part), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := runIn(t, "", "--dir", dir, "dev")
		if got.code != messages.ExitRefused || !strings.Contains(got.err, "dev runs only from a directory that it made") || !strings.Contains(got.err, part) {
			t.Errorf("%s: exit %d, %s", part, got.code, got.err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: left %v, %v", part, entries, err)
		}
	}
}

func TestADirectoryOfDevStaysOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := claimDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := claimDir(dir); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, markFile)); err != nil {
		t.Fatal(err)
	}
	if err := claimDir(dir); !errors.Is(err, messages.DevForeign) {
		t.Errorf("without its mark: %v", err)
	}
}
