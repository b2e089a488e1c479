package service

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

func TestARecordIsFoundAndTakenAway(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	record := Record{Space: "acme", URL: "http://127.0.0.1:1", StateDir: second, PID: os.Getpid()}
	if err := record.Write(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(second, RecordFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if found, err := Find(first, second); err != nil || found != record {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := record.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(first, second); !errors.Is(err, messages.ServiceAway) {
		t.Errorf("after removal: %v", err)
	}
	if err := record.Remove(); err != nil {
		t.Errorf("removing twice: %v", err)
	}
}

func TestARecordOfADeadProcessIsStale(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	stale := Record{StateDir: dir, PID: child.Process.Pid}
	if err := stale.Write(); err != nil {
		t.Fatal(err)
	}
	_, err := Find(dir)
	if !errors.Is(err, messages.ServiceAway) || !strings.Contains(err.Error(), "stale") {
		t.Errorf("got %v", err)
	}
	live := Record{StateDir: other, PID: os.Getpid()}
	if err := live.Write(); err != nil {
		t.Fatal(err)
	}
	if found, err := Find(dir, other); err != nil || found != live {
		t.Errorf("a stale record hides a live one: %+v, %v", found, err)
	}
}

func TestAnothersRecordStays(t *testing.T) {
	dir := t.TempDir()
	if err := (Record{StateDir: dir, PID: os.Getppid()}).Write(); err != nil {
		t.Fatal(err)
	}
	if err := (Record{StateDir: dir, PID: os.Getpid()}).Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, RecordFile)); err != nil {
		t.Errorf("the record of another process was removed: %v", err)
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
