package settings

// file is the shape of authplane.yaml: the keys of one space, or a list of spaces
// that each have them, and what holds for the whole process.
type file struct {
	spaceFile
	Spaces []spaceFile `yaml:"spaces"`
	Log    Log         `yaml:"log"`
}

// spaceFile is what is said of one space. Every key is optional here; which ones a
// space needs is for space.Config.Validate to say. Relative paths are relative to
// the file.
type spaceFile struct {
	Space    string `yaml:"space"`
	NATSURL  string `yaml:"nats_url"`
	StateDir string `yaml:"state_dir"`
	// SecretsDir may be left out where $CREDENTIALS_DIRECTORY is set.
	SecretsDir    string      `yaml:"secrets_dir"`
	SentinelCreds string      `yaml:"sentinel_creds"`
	IDP           *idpFile    `yaml:"idp"`
	Listen        string      `yaml:"listen"`
	Public        *publicFile `yaml:"public"`
	Replicas      int         `yaml:"replicas"`
	Responders    int         `yaml:"responders"`
	Servers       []string    `yaml:"servers"`
	Eviction      string      `yaml:"eviction"`
	// Footprint is what every machine gets besides its grant.
	Footprint footprintFile `yaml:"footprint"`
	// ControllerLifetime is in seconds.
	ControllerLifetime int `yaml:"controller_lifetime"`
	// ObserveRequests has requests for runs witnessed that are not signed.
	ObserveRequests bool `yaml:"observe_requests"`
}

type idpFile struct {
	Issuer     string   `yaml:"issuer"`
	Audience   string   `yaml:"audience"`
	Algorithms []string `yaml:"algorithms"`
	JWKSURL    string   `yaml:"jwks_url"`
	// JWKSFile pins the keys themselves; nothing is fetched then.
	JWKSFile string `yaml:"jwks_file"`
}

type publicFile struct {
	Listen        string `yaml:"listen"`
	URL           string `yaml:"url"`
	CertFile      string `yaml:"cert_file"`
	KeyFile       string `yaml:"key_file"`
	ClientNATSURL string `yaml:"client_nats_url"`
}

// Log says how the service logs.
type Log struct {
	// Level is debug, info (default), warn or error.
	Level string `yaml:"level"`
	// Format is text or json; empty is text on a terminal and json elsewhere.
	Format string `yaml:"format"`
}

func (l Log) problems() []problem {
	var found []problem
	switch l.Level {
	case "", "debug", "info", "warn", "error":
	default:
		found = append(found, problem{key: "log.level", text: "must be debug, info, warn or error"})
	}
	switch l.Format {
	case "", "text", "json":
	default:
		found = append(found, problem{key: "log.format", text: "must be text or json"})
	}
	return found
}
