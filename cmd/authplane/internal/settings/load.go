package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

// Settings is what one file says.
type Settings struct {
	Space space.Config
	Log   Log
}

// Overrides is what a command line puts above the file.
type Overrides struct {
	// StateDir replaces state_dir unless it is empty.
	StateDir string
	// CredentialsDir stands in for secrets_dir where the file names none; it is
	// $CREDENTIALS_DIRECTORY, which systemd sets.
	CredentialsDir string
}

// Load reads and checks the file at path. An error lists every problem and is of
// code bad-request.
func Load(path string, over Overrides) (Settings, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, errors.Join(messages.Malformed.Because("read the configuration: %v", err), err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Settings{}, fmt.Errorf("resolve %s: %w", path, err)
	}
	return parse(path, filepath.Dir(absolute), body, over)
}

// parse does the work of Load; relative paths in the body are relative to dir.
func parse(name, dir string, body []byte, over Overrides) (Settings, error) {
	var content file
	s := shape{lines: map[string]int{}}
	s.read(body, &content)

	settings, more := content.settings(dir, over)
	more = append(more, meaningProblems(settings.Space)...)
	return settings, refuse(name, s.join(more))
}

// join adds what is wrong with the meaning of values to what is wrong with their
// shape, leaving out keys whose shape is already blamed.
func (s *shape) join(more []problem) []problem {
	blamed := map[string]bool{}
	for _, p := range s.problems {
		blamed[p.key] = true
	}
	if blamed[""] { // it is no YAML at all, and so says nothing about any key
		return s.problems
	}
	all := s.problems
	for _, p := range more {
		if blamed[p.key] {
			continue
		}
		p.line = s.lines[p.key]
		all = append(all, p)
	}
	return all
}

// settings turns the content into what the space takes.
func (f file) settings(dir string, over Overrides) (Settings, []problem) {
	found := f.Log.problems()
	config := space.Config{
		Space:         f.Space,
		NATSURL:       f.NATSURL,
		StateDir:      under(dir, f.StateDir),
		SecretsDir:    under(dir, f.SecretsDir),
		SentinelCreds: under(dir, f.SentinelCreds),
		Listen:        f.Listen,
		Replicas:      f.Replicas,
		Responders:    f.Responders,
		Servers:       f.Servers,
	}
	if over.StateDir != "" {
		config.StateDir = over.StateDir
	}
	if config.SecretsDir == "" {
		config.SecretsDir = over.CredentialsDir
	}
	if f.Public != nil {
		config.Public = f.Public.config(dir)
	}
	if f.IDP != nil {
		provider, err := f.IDP.config(dir)
		if err != nil {
			found = append(found, problem{key: "idp.jwks_file", text: err.Error()})
		}
		config.Provider = provider
	}
	return Settings{Space: config, Log: f.Log}, found
}

func (p publicFile) config(dir string) *space.PublicConfig {
	return &space.PublicConfig{
		Listen:        p.Listen,
		URL:           p.URL,
		CertFile:      under(dir, p.CertFile),
		KeyFile:       under(dir, p.KeyFile),
		ClientNATSURL: p.ClientNATSURL,
	}
}

func (p idpFile) config(dir string) (*space.ProviderConfig, error) {
	provider := &space.ProviderConfig{
		Issuer:     p.Issuer,
		Audience:   p.Audience,
		Algorithms: p.Algorithms,
		JWKSURL:    p.JWKSURL,
	}
	if p.JWKSFile == "" {
		return provider, nil
	}
	keys, err := os.ReadFile(under(dir, p.JWKSFile))
	if err != nil {
		return provider, err
	}
	provider.JWKS = keys
	return provider, nil
}

// under makes a path of the file absolute; an absent one stays absent.
func under(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
