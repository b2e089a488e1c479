package service

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// leave writes a record as a service does.
func leave(t *testing.T, r Record) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := WritePrivate(filepath.Join(r.StateDir, RecordFile), body); err != nil {
		t.Fatal(err)
	}
}

func TestARecordIsFound(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	if _, err := Find(first, second); !errors.Is(err, messages.ServiceAway) {
		t.Errorf("found nothing: %v", err)
	}
	record := Record{Space: "acme", URL: "http://127.0.0.1:1", StateDir: second, PID: os.Getpid()}
	leave(t, record)
	if found, err := Find(first, second); err != nil || found != record {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestWritePrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, body := range []string{"one", "two"} {
		if err := WritePrivate(path, []byte(body)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != body {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if err := WritePrivate(filepath.Join(path, "below"), nil); err == nil {
		t.Error("wrote below a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestARecordOfADeadProcessIsStale(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	stale := Record{StateDir: dir, PID: child.Process.Pid}
	leave(t, stale)
	_, err := Find(dir)
	if !errors.Is(err, messages.ServiceAway) || !strings.Contains(err.Error(), "stale") {
		t.Errorf("got %v", err)
	}
	live := Record{StateDir: other, PID: os.Getpid()}
	leave(t, live)
	if found, err := Find(dir, other); err != nil || found != live {
		t.Errorf("a stale record hides a live one: %+v, %v", found, err)
	}
}

func TestAGarbledRecordIsNotAbsence(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, RecordFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir); err == nil || errors.Is(err, messages.ServiceAway) {
		t.Errorf("got %v", err)
	}
}
