package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"unicode"

	"github.com/cotal-ai/authplane/messages"
)

// Beginning is what a new configuration says.
type Beginning struct {
	Space   string
	NATSURL string
	// Issuer of the identity provider; empty leaves machines only.
	Issuer string
	// Replicas as in space.Config.
	Replicas int
	// SecretsDir and SentinelCreds lie beside the file, or are absolute.
	SecretsDir    string
	SentinelCreds string
}

// layout writes every value in quotes that YAML and JSON share.
const layout = `# What authplane serve does. Relative paths are relative to this file.
space: {{q .Space}}
nats_url: {{q .NATSURL}}

# Belongs to one process; another one needs a directory of its own (--state-dir).
state_dir: state
# Read only, and may be shared. Without this line $CREDENTIALS_DIRECTORY is read.
secrets_dir: {{q .SecretsDir}}
# What clients connect with, besides their token. It opens nothing.
sentinel_creds: {{q .SentinelCreds}}

# Copies of the authority's records that the servers keep: 1, 3 or 5. It cannot be
# changed once they are made.
replicas: {{.Replicas}}

# Where people log in. Without it only machines do.
{{with .Issuer -}}
idp:
  issuer: {{q .}}
{{- else -}}
# idp:
#   issuer: https://id.example.com
{{- end}}
#   audience: {{.Space}}
#   algorithms: [EdDSA, ES256, RS256]
#   jwks_url: https://id.example.com/keys
#   jwks_file: keys.json

# The face that operators and their tools reach; loopback, and any free port.
# listen: 127.0.0.1:7070

# The face that people and machines outside reach; shut unless it is named.
# public:
#   listen: 0.0.0.0:7443
#   url: https://auth.example.com
#   cert_file: tls/cert.pem
#   key_file: tls/key.pem
#   client_nats_url: tls://nats.example.com:4222

# Connections that answer connects, 2 to 4.
# responders: 2

# Public keys of the servers whose connects are answered; every server if left out.
# servers: [NAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA]

# How it is proved that somebody who was retired is connected nowhere any more: sweep
# asks every server and has connections dropped, through the system account. expiry is
# for servers that somebody else runs (a hosted NATS): it needs no keys of that account,
# drops nobody, and waits until every permission has run out, some 15 minutes.
# eviction: sweep

# How long the standing credentials of controllers run, 5 to 86400 seconds. They cannot
# be taken back before.
# controller_lifetime: 86400

# Whether requests for runs are observed, so that those count which their callers did not
# sign. Callers are then not told any more when no service listens.
# observe_requests: true

# What every machine gets besides its grant, in the account of the principals: durable
# consumers and rows, of streams and buckets that are there. {owner}, {actor}, {uid} and
# {space} stand for those of the machine; each name has the {uid}, so that it is no other
# incarnation's. It is made when a machine is enrolled or granted, and removed when that
# has ended. ack is explicit, all or none; deliver is all, new or last.
# footprint:
#   consumers:
#     - stream: DM
#       name: dm-{uid}
#       filters: ["dm.{owner}.{actor}.>"]
#       ack: explicit
#       ack_wait: 30s
#       max_deliver: 5
#       max_ack_pending: 100
#       deliver: all
#   rows:
#     - bucket: acl_{space}
#       key: "{owner}.{actor}.{uid}"
#       value: '{"role":"member"}'

# log:
#   level: info
#   format: json

# Several spaces in one process: a list in the place of everything above but log.
# Each entry has the keys of one space; --dir of the verbs names its state directory.
# spaces:
#   - space: {{.Space}}
#     nats_url: {{q .NATSURL}}
#     state_dir: {{.Space}}/state
#     secrets_dir: {{.Space}}/secrets
#     sentinel_creds: {{.Space}}/sentinel.creds
`

// Check lists what is wrong with a beginning, by the flags of init: what its file
// would be refused for in dir, and what no server could listen on.
func (b Beginning) Check(dir string) error {
	body, err := b.render()
	if err != nil {
		return err
	}
	var content file
	s := shape{lines: map[string]int{}}
	s.read([]byte(body), &content)
	_, more := content.settings(dir, Overrides{}, s.lines)
	found := s.join(more)
	if strings.Contains(b.NATSURL, ",") {
		found = append(found, problem{key: "nats_url", text: "names several servers, and one is configured here; add the others in the files"})
	}
	for i := range found {
		found[i].line = 0 // the file is not there yet
		if flag, is := flags[found[i].key]; is {
			found[i].key = flag
		}
	}
	return refuse("nothing was made", found)
}

// flags are what init calls the settings that it is told.
var flags = map[string]string{"space": "--space", "nats_url": "--nats-url", "idp.issuer": "--idp", "replicas": "--replicas"}

// Create writes the configuration to a file that must not be there yet.
func (b Beginning) Create(path string) error {
	body, err := b.render()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return messages.ConfigStands.Because("%s", path)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	_, err = file.Write(body)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the configuration: %w", err), os.Remove(path))
	}
	return nil
}

func (b Beginning) render() ([]byte, error) {
	page, err := template.New("authplane.yaml").Funcs(template.FuncMap{"q": quote}).Parse(layout)
	if err != nil {
		return nil, err
	}
	var body strings.Builder
	if err := page.Execute(&body, b); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return []byte(body.String()), nil
}

// quote writes a text so that YAML reads it back as it is. A text that cannot be
// written on one line of printable characters is refused.
func quote(text string) (string, error) {
	for _, r := range text {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return "", messages.Malformed.Because("%q holds characters that do not belong there", text)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`, nil
}

// Beside names a path as a file in dir would: relative where it lies below.
func Beside(dir, path string) string {
	relative, err := filepath.Rel(dir, path)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return path
	}
	return relative
}
