package space

import (
	"context"
	"path/filepath"

	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// InitOptions says what installation to make.
type InitOptions struct {
	// Dir is where it goes; it is made if it is not there.
	Dir string
	// Space names the tenant.
	Space string
	// NATSURL is where the server will listen; empty is nats://127.0.0.1:4222.
	NATSURL string
}

// Initialised says where everything of a new installation stands.
type Initialised struct {
	// ServerConfig is what a nats-server starts with.
	ServerConfig string
	// SentinelCreds is what clients connect with, besides their bearer.
	SentinelCreds string
	// SecretsDir is what the daemon reads.
	SecretsDir string
	// OfflineDir is to be carried away: the operator's and the accounts' seeds, and
	// the creds that work when the authority does not.
	OfflineDir string
}

// Init makes the trust chain of a space, and the configuration of a server that
// lives by it. Where one stands it changes nothing and refuses.
func Init(ctx context.Context, o InitOptions) (Initialised, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Initialised{}, err
	}
	if err := trust.Create(ctx, trust.Options{Dir: dir, Space: o.Space, NATSURL: o.NATSURL}); err != nil {
		return Initialised{}, err
	}
	return InstallationIn(dir), nil
}

// InstallationIn says where everything stands of an installation that was made in dir.
func InstallationIn(dir string) Initialised {
	return Initialised{
		ServerConfig:  filepath.Join(dir, "nats-server.conf"),
		SentinelCreds: filepath.Join(dir, "sentinel.creds"),
		SecretsDir:    filepath.Join(dir, "secrets"),
		OfflineDir:    filepath.Join(dir, "offline"),
	}
}
