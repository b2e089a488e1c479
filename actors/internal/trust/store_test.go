package trust_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/trust"
)

func TestDirectoryInsistsOnItsModes(t *testing.T) {
	const name = "xkey.seed"
	for what, tc := range map[string]struct {
		spoil func(t *testing.T, dir, file string)
		want  string // empty: it may be read
	}{
		"as it should be":       {func(t *testing.T, dir, file string) {}, ""},
		"narrower":              {func(t *testing.T, dir, file string) { chmod(t, file, 0o400); chmod(t, dir, 0o500) }, ""},
		"the group may read":    {func(t *testing.T, _, file string) { chmod(t, file, 0o640) }, "chmod 600 "},
		"all may read":          {func(t *testing.T, _, file string) { chmod(t, file, 0o604) }, "chmod 600 "},
		"the group may write":   {func(t *testing.T, _, file string) { chmod(t, file, 0o620) }, "chmod 600 "},
		"it may be executed":    {func(t *testing.T, _, file string) { chmod(t, file, 0o700) }, "chmod 600 "},
		"all may look":          {func(t *testing.T, dir, _ string) { chmod(t, dir, 0o755) }, "chmod 700 "},
		"the group may look":    {func(t *testing.T, dir, _ string) { chmod(t, dir, 0o750) }, "chmod 700 "},
		"a link":                {link, "symbolic link"},
		"a directory":           {func(t *testing.T, _, file string) { remove(t, file); mkdir(t, file) }, "not a regular file"},
		"a pipe":                {pipe, "not a regular file"},
		"nothing in it":         {func(t *testing.T, _, file string) { truncate(t, file, 0) }, "empty"},
		"far too much in it":    {func(t *testing.T, _, file string) { truncate(t, file, 1<<20+1) }, "too long"},
		"not there":             {func(t *testing.T, _, file string) { remove(t, file) }, "no such secret"},
		"the directory is gone": {func(t *testing.T, dir, _ string) { rename(t, dir, dir+".old") }, "no such file"},
		"the directory is none": {func(t *testing.T, dir, _ string) { rename(t, dir, dir+".old"); write(t, dir) }, "not a directory"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := trust.SecretsDir(create(t, trust.Options{}))
			file := filepath.Join(dir, name)
			tc.spoil(t, dir, file)
			secret, err := trust.Directory(dir).Get(t.Context(), name)
			if tc.want == "" {
				if err != nil || secret.IsZero() {
					t.Errorf("it was refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want it to say %q and where", err, tc.want)
			}
			if got := errors.Is(err, trust.ErrNoSecret); got != (what == "not there") {
				t.Errorf("it takes a refusal for absence, or the other way round: %v", err)
			}
		})
	}
}

func TestStoresKnowNamesAndNotPaths(t *testing.T) {
	dir := create(t, trust.Options{})
	for _, name := range []string{"", ".", "..", "../offline/operator.seed", "/etc/hostname", "secrets/xkey.seed"} {
		for what, store := range map[string]trust.SecretStore{
			"directory": trust.Directory(trust.SecretsDir(dir)),
			"injected":  trust.Injected{},
		} {
			if _, err := store.Get(t.Context(), name); err == nil {
				t.Errorf("%s gave %q", what, name)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trust.Directory(trust.SecretsDir(dir)).Get(ctx, "xkey.seed"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up beforehand: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) { must(t, os.Chmod(path, mode)) }
func remove(t *testing.T, path string)                  { must(t, os.Remove(path)) }
func mkdir(t *testing.T, path string)                   { must(t, os.Mkdir(path, 0o700)) }
func rename(t *testing.T, from, to string)              { must(t, os.Rename(from, to)) }
func write(t *testing.T, path string)                   { must(t, os.WriteFile(path, []byte("x"), 0o600)) }
func truncate(t *testing.T, path string, size int64)    { must(t, os.Truncate(path, size)) }
func pipe(t *testing.T, _, file string)                 { remove(t, file); must(t, syscall.Mkfifo(file, 0o600)) }
func link(t *testing.T, _, file string) {
	rename(t, file, file+".real")
	must(t, os.Symlink(file+".real", file))
}
