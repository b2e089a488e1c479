package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

// Settings is what one file says.
type Settings struct {
	// Spaces has at least one element, in the order of the file.
	Spaces []space.Config
	Log    Log
}

// Overrides is what a command line puts above the file.
type Overrides struct {
	// StateDir replaces state_dir unless it is empty. With a list of spaces each has
	// a directory of its name below it.
	StateDir string
	// CredentialsDir stands in for secrets_dir where the file is of one space and
	// names none; it is $CREDENTIALS_DIRECTORY, which systemd sets.
	CredentialsDir string
}

// Load reads and checks the file at path. An error lists every problem and is of
// code bad-request.
func Load(path string, over Overrides) (Settings, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, messages.Malformed.From(fmt.Errorf("read the configuration: %w", err))
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

	settings, more := content.settings(dir, over, s.lines)
	return settings, refuse(name, s.join(more))
}

// join adds what is wrong with the meaning of values to what is wrong with their
// shape, leaving out keys whose shape, or that of what they stand in, is blamed.
func (s *shape) join(more []problem) []problem {
	blamed := map[string]bool{} // "" is in it if it is no YAML at all
	for _, p := range s.problems {
		blamed[p.key] = true
	}
	all := s.problems
	for _, p := range more {
		at := p.key
		for at != "" && !blamed[at] {
			at = above(at)
		}
		if !blamed[at] {
			p.line = s.line(p.key)
			all = append(all, p)
		}
	}
	return all
}

// line is where a key stands, or else what it would stand in; 0 if that is the file.
func (s *shape) line(key string) int {
	for ; key != ""; key = above(key) {
		if line := s.lines[key]; line != 0 {
			return line
		}
	}
	return 0
}

// above names what a key stands in; empty for the file.
func above(key string) string { return key[:max(0, strings.LastIndexByte(key, '.'))] }

// settings turns the content into what the spaces take. lines says which keys stand.
func (f file) settings(dir string, over Overrides, lines map[string]int) (Settings, []problem) {
	found := f.Log.problems()
	if _, listed := lines["spaces"]; listed {
		spaces, more := f.list(dir, over)
		return Settings{spaces, f.Log}, slices.Concat(found, strays(lines), more)
	}
	config, more := f.config(dir, over)
	return Settings{[]space.Config{config}, f.Log}, append(found, more...)
}

// config turns the keys of one space into what it takes.
func (f spaceFile) config(dir string, over Overrides) (space.Config, []problem) {
	var found []problem
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
		Eviction:      f.Eviction,
		// Beyond every limit all are alike, and none comes round to a good one.
		ControllerLifetime: time.Duration(max(-1, min(f.ControllerLifetime, 1<<20))) * time.Second,
		ObserveRequests:    f.ObserveRequests,
	}
	config.Footprint, found = f.Footprint.config()
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
	return config, append(found, meaningProblems(config)...)
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
