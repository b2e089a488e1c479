package space

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Files of the state directory. All are 0600; none but capabilityFile is secret.
const (
	lockFile         = "lock"
	capabilityFile   = "capability"
	installationFile = "installation.json"
	recordsFile      = "records-installation.json"
)

// written are the files that are replaced whole, by way of another one.
var written = []string{InstanceFile, capabilityFile, installationFile, recordsFile, ServiceFile}

// InstanceFile is the name of the file that makes a directory the state of a process,
// before it is served the first time and after.
const InstanceFile = "instance"

// ServiceFile is the name of the file in the state directory that holds a Service as
// JSON while the space runs.
const ServiceFile = "service.json"

// stateDir is the directory that belongs to this process alone: it is locked for
// as long as the space lives, and the kernel lets go of it when the process dies.
type stateDir struct {
	path string
	lock *os.File
}

// openStateDir makes the directory if need be and locks it. A directory that
// another process holds is refused.
func openStateDir(path string) (*stateDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, messages.StateDirTaken.Because("%s", path)
		}
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	d := &stateDir{path: path, lock: lock}
	if err := d.sweep(); err != nil {
		return nil, fmt.Errorf("state directory: %w", errors.Join(err, lock.Close()))
	}
	return d, nil
}

// sweep removes what a process left that was killed while it wrote. Under the lock
// nobody else writes here.
func (d *stateDir) sweep() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if isLeftover(entry.Name()) {
			err = errors.Join(err, os.Remove(d.file(entry.Name())))
		}
	}
	return err
}

// isLeftover reports whether a file has the name of one that write was replacing.
func isLeftover(name string) bool {
	for _, ours := range written {
		number, is := strings.CutPrefix(name, "."+ours+".")
		if is && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}

// release removes what only a running service leaves there, and gives the
// directory back.
func (d *stateDir) release() error {
	return errors.Join(d.forget(ServiceFile, capabilityFile), d.lock.Close())
}

func (d *stateDir) file(name string) string { return filepath.Join(d.path, name) }

// instance is the id of this process's place in the space: minted once, kept
// across restarts.
func (d *stateDir) instance() (string, error) {
	raw, err := os.ReadFile(d.file(InstanceFile))
	if errors.Is(err, fs.ErrNotExist) {
		id := names.NewUID()
		return id, d.write(InstanceFile, []byte(id))
	}
	if err != nil {
		return "", fmt.Errorf("instance id: %w", err)
	}
	if err := names.CheckUID(string(raw)); err != nil {
		return "", fmt.Errorf("instance id in %s: %w", d.file(InstanceFile), err)
	}
	return string(raw), nil
}

// read fills value from a JSON file, and reports whether there was one.
func (d *stateDir) read(name string, value any) (bool, error) {
	raw, err := os.ReadFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return false, fmt.Errorf("%s: %w", d.file(name), err)
	}
	return true, nil
}

// writeJSON replaces a file by the JSON of value.
func (d *stateDir) writeJSON(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return d.write(name, raw)
}

// write replaces a file so that a crash leaves the old bytes or the new ones.
func (d *stateDir) write(name string, content []byte) error {
	temp, err := os.CreateTemp(d.path, "."+name+".*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), d.file(name))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("write %s: %w", name, err)
	}
	return d.sync()
}

// sync makes the directory's entries durable.
func (d *stateDir) sync() error {
	dir, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// forget removes files that only a running service leaves.
func (d *stateDir) forget(files ...string) error {
	var all error
	for _, name := range files {
		if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}
