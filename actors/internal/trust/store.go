package trust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cotal-ai/authplane/messages"
)

// maxSecret bounds one secret, in bytes.
const maxSecret = 1 << 20

// ErrNoSecret is a name that a store does not hold.
var ErrNoSecret = errors.New("there is no such secret")

// SecretStore hands out the daemon's secrets by name; the names are the file
// names in the package comment. The daemon never writes to a store.
type SecretStore interface {
	// Get returns a secret. ErrNoSecret is wrapped by the error when there is none
	// of that name; any other error means that it could not or may not be read. No
	// error quotes a secret.
	Get(ctx context.Context, name string) (messages.Secret, error)
}

// Injected is a store held in memory by an embedding program.
type Injected map[string]messages.Secret

// Get returns the secret of that name.
func (s Injected) Get(_ context.Context, name string) (messages.Secret, error) {
	secret, ok := s[name]
	if !ok || secret.IsZero() {
		return messages.Secret{}, fmt.Errorf("%s: %w", name, ErrNoSecret)
	}
	return secret, nil
}

// Directory is a store of files: the secrets/ directory of a chain. It insists
// that the directory is ours and 0700 or narrower, and that each file is a regular
// file of ours, 0600 or narrower; what is wider is refused by name.
func Directory(path string) SecretStore {
	return files{path: path, owner: os.Geteuid(), strict: true}
}

// Credentials is the store that systemd hands to a service: the directory named
// by $CREDENTIALS_DIRECTORY, whose modes are systemd's own affair. With
// `LoadCredential=<id>:<dir>` each file is called `<id>_<name>`; give that id, or
// an empty one for files loaded one by one under their own names.
func Credentials(id string) (SecretStore, error) {
	path := os.Getenv("CREDENTIALS_DIRECTORY")
	if path == "" {
		return nil, messages.KeysUnusable.Because("$CREDENTIALS_DIRECTORY is not set: the service manager handed over no credentials")
	}
	prefix := ""
	if id != "" {
		prefix = id + "_"
	}
	return files{path: path, prefix: prefix}, nil
}

// files is a store of one file a secret.
type files struct {
	path, prefix string
	// strict has owner and modes checked.
	strict bool
	owner  int
}

func (s files) Get(ctx context.Context, name string) (messages.Secret, error) {
	if err := ctx.Err(); err != nil {
		return messages.Secret{}, err
	}
	if name == "" || name != filepath.Base(name) {
		return messages.Secret{}, fmt.Errorf("%q: %w", name, ErrNoSecret)
	}
	if err := s.checkDirectory(); err != nil {
		return messages.Secret{}, err
	}
	path := filepath.Join(s.path, s.prefix+name)
	// Neither follow a link nor wait for the writer of a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return messages.Secret{}, fmt.Errorf("%s: %w", path, ErrNoSecret)
	case errors.Is(err, syscall.ELOOP):
		return messages.Secret{}, fmt.Errorf("%s is a symbolic link; put the file itself there", path)
	case err != nil:
		return messages.Secret{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if err := s.checkFile(f, path); err != nil {
		return messages.Secret{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return messages.Secret{}, err
	}
	if len(data) == 0 || len(data) > maxSecret {
		return messages.Secret{}, fmt.Errorf("%s is empty or far too long", path)
	}
	return messages.NewSecret(string(data)), nil
}

func (s files) checkDirectory() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", s.path)
	}
	return s.checkMode(info, s.path, 0o700)
}

func (s files) checkFile(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return s.checkMode(info, path, 0o600)
}

// checkMode refuses what others might read or change.
func (s files) checkMode(info fs.FileInfo, path string, widest fs.FileMode) error {
	if !s.strict {
		return nil
	}
	if mode := info.Mode().Perm(); mode&^widest != 0 {
		return fmt.Errorf("%s has mode %04o, which lets others at it; run: chmod %o %s", path, mode, widest, path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != s.owner {
		return fmt.Errorf("%s belongs to user %d, not to %d, as whom this runs; run: chown %d %s", path, stat.Uid, s.owner, s.owner, path)
	}
	return nil
}
