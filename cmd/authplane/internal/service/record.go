package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

// RecordFile is the name of the record inside a state directory.
const RecordFile = space.ServiceFile

// Record is what a service that is ready says of itself: on the first line of its
// output, and in its state directory for commands to find it by, from where it is
// gone once the service has closed.
type Record = space.Service

// Find returns the record of the service that runs from one of the directories,
// trying them in order. A record whose process is gone is passed over; where no
// other is found the error says so. Errors are of code unavailable: the service may
// come up later, and with messages.ServiceStarting one is about to.
func Find(dirs ...string) (Record, error) {
	var stale error
	for _, dir := range dirs {
		path := filepath.Join(dir, RecordFile)
		record, err := readRecord(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return Record{}, err
		case !alive(record.PID):
			stale = messages.ServiceAway.Because("%s is stale: its process %d has ended without closing", path, record.PID)
		default:
			return record, nil
		}
	}
	for _, dir := range dirs {
		if starts(dir) {
			return Record{}, messages.ServiceStarting.Because("from %s", dir)
		}
	}
	if stale != nil {
		return Record{}, stale
	}
	return Record{}, messages.ServiceAway.Because("nothing runs from %s", dirs[0])
}

func readRecord(path string) (Record, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return Record{}, fmt.Errorf("read the service record: %w", err)
	}
	var record Record
	if err := json.Unmarshal(body, &record); err != nil {
		return Record{}, fmt.Errorf("read the service record %s: %w", path, err)
	}
	return record, nil
}

// starts reports whether a process holds a state directory that has no record of a
// service yet. It tries the lock only where a start has left its capability, and
// thus holds the lock already: it must never take it from one that is about to.
func starts(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "capability")); err != nil {
		return false
	}
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return false
	}
	defer lock.Close()
	return errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// alive reports whether a process with that id exists, whoever it belongs to.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
