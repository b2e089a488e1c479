package trust

import "fmt"

// The parts of a chain, below its directory.
const (
	confFile     = "nats-server.conf"
	sentinelFile = "sentinel.creds"
	storeDir     = "jetstream"
	secretsDir   = "secrets"
	offlineDir   = "offline"
)

// The names of the daemon's secrets.
const (
	chainName       = "chain.json"
	observerName    = "sys-observer.seed"
	evictorName     = "sys-evictor.seed"
	presenceName    = "presence.seed"
	xkeyName        = "xkey.seed"
	keyringName     = "bearer-keys.json"
	ownerSecretName = "owner.secret"
)

// signingNames are the secrets that sign for an account.
var signingNames = map[Account]string{
	AUTH: "auth-signing.seed", DATA: "data-signing.seed", CTRL: "ctrl-signing.seed", SVC: "svc-signing.seed",
}

// calloutName is the secret of the i-th callout user, from 1.
func calloutName(i int) string { return fmt.Sprintf("callout-%d.seed", i) }

// SecretsDir is where the chain below dir keeps what the daemon reads.
func SecretsDir(dir string) string { return dir + "/" + secretsDir }

// OfflineDir is what should be carried away from dir and kept offline.
func OfflineDir(dir string) string { return dir + "/" + offlineDir }

// SentinelCreds is the file that clients carry a bearer with.
func SentinelCreds(dir string) string { return dir + "/" + sentinelFile }

// ServerConf is the configuration of a nats-server for the chain below dir.
func ServerConf(dir string) string { return dir + "/" + confFile }

// BreakGlassData and BreakGlassSYS are the long-lived users that work with the
// authority dead.
func BreakGlassData(dir string) string { return OfflineDir(dir) + "/break-glass-data.creds" }

// BreakGlassSYS is the same for the system account.
func BreakGlassSYS(dir string) string { return OfflineDir(dir) + "/break-glass-sys.creds" }

// KeyringFile is the keyring of bearer keys in the chain below dir; its rotation
// writes it.
func KeyringFile(dir string) string { return SecretsDir(dir) + "/" + keyringName }
