package trust

import (
	"errors"
	"os"
	"path/filepath"
)

// writeDir makes a directory that only we may enter, with files only we may read.
func writeDir(path string, files map[string][]byte) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := writeFile(filepath.Join(path, name), data, 0o600); err != nil {
			return err
		}
	}
	return syncDir(path)
}

// writeFile makes a new file and sees it safely stored. The mode is exact,
// whatever the umask is.
func writeFile(path string, data []byte, mode os.FileMode) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Sync()
}

func syncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}
