package trust

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// A part that appears while the others are moved into place ends the attempt, and
// what was moved goes back.
func TestPublishTakesBackWhatItPlaced(t *testing.T) {
	for _, obstacle := range []string{sentinelFile, confFile, secretsDir} {
		t.Run(obstacle, func(t *testing.T) {
			dir := t.TempDir()
			stage := filepath.Join(dir, ".init-1")
			for _, part := range parts {
				if err := os.MkdirAll(filepath.Join(stage, part), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, obstacle), []byte("another's"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := publish(dir, stage); !errors.Is(err, messages.ChainStands) {
				t.Errorf("got %v", err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != 2 {
				t.Errorf("it left %v", entries)
			}
			if data, err := os.ReadFile(filepath.Join(dir, obstacle)); err != nil || string(data) != "another's" {
				t.Errorf("the obstacle is now %q, %v", data, err)
			}
		})
	}
}

func TestFilesOfAnotherUserAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours := files{path: dir, strict: true, owner: os.Geteuid()}
	if _, err := ours.Get(t.Context(), "x"); err != nil {
		t.Errorf("our own: %v", err)
	}
	theirs := files{path: dir, strict: true, owner: os.Geteuid() + 1}
	if _, err := theirs.Get(t.Context(), "x"); err == nil {
		t.Error("a file of somebody else was read")
	}
}

func FuzzParseDocument(f *testing.F) {
	c, err := newChain("acme", 1, time.Unix(1_700_000_000, 0))
	if err != nil {
		f.Fatal(err)
	}
	good, err := c.doc.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"v":1}{"v":1}`))
	f.Add([]byte(`{"v":1,"accounts":{"AUTH":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseDocument(data)
		if err != nil {
			return
		}
		again, err := d.encode()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := parseDocument(again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
