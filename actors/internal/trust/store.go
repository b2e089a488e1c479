package trust

import (
	"context"

	"github.com/cotal-ai/authplane/messages"
)

// SecretStore hands out the daemon's secrets by name; the names are the file
// names in the package comment. The daemon never writes to a store.
type SecretStore interface {
	// Get returns a secret. ErrNoSecret is wrapped by the error when there is none
	// of that name; any other error means that it could not or may not be read.
	Get(ctx context.Context, name string) (messages.Secret, error)
}

// Directory is a store of files: the secrets/ directory of a chain. It insists
// that the directory is 0700 or narrower, and that each file is a regular file
// of ours, 0600 or narrower; what is wider is refused by name.
func Directory(path string) SecretStore { return directory{path: path} }

// Credentials is the store that systemd hands to a service: the directory named
// by $CREDENTIALS_DIRECTORY, whose modes are systemd's own affair. With
// `LoadCredential=<id>:<dir>` each file is called `<id>_<name>`; give that id, or
// an empty one for files loaded one by one under their own names.
func Credentials(id string) (SecretStore, error) { return nil, nil }

// Injected is a store held in memory by an embedding program.
type Injected map[string]messages.Secret

// Get returns the secret of that name.
func (s Injected) Get(_ context.Context, name string) (messages.Secret, error) {
	secret, ok := s[name]
	if !ok || secret.IsZero() {
		return messages.Secret{}, noSecret(name)
	}
	return secret, nil
}

type directory struct{ path string }

func (d directory) Get(ctx context.Context, name string) (messages.Secret, error) {
	return messages.Secret{}, noSecret(name)
}
