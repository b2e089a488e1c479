package trust

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Options says what chain to make.
type Options struct {
	// Dir is where it goes. It is made if it is not there; it may hold other files.
	Dir string
	// Space names the tenant.
	Space string
	// NATSURL is where the server will listen: nats:// or tls://, host and port; the
	// first one of a comma-separated list. Port 0 means any free one. Default
	// nats://127.0.0.1:4222.
	NATSURL string
	// Callouts is how many users AUTH exempts from the callout to answer it, 1 to 64;
	// default 4. More connections than these share them.
	Callouts int
}

const (
	defaultCallouts = 4
	maxCallouts     = 64
)

// Create makes a trust chain once. Where one stands, whole or in part, it changes
// nothing and refuses with messages.ChainStands; of several that race, one
// succeeds.
func Create(ctx context.Context, o Options) error {
	if err := create(ctx, o); err != nil {
		return fmt.Errorf("make the trust chain in %s: %w", o.Dir, err)
	}
	return nil
}

func create(ctx context.Context, o Options) error {
	address, err := o.check()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	if err := refuseStanding(o.Dir); err != nil {
		return err
	}
	c, err := newChain(o.Space, o.Callouts, time.Now())
	if err != nil {
		return err
	}
	stage, err := os.MkdirTemp(o.Dir, ".init-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	if err := c.write(o.Dir, stage, address); err != nil {
		return err
	}
	return publish(o.Dir, stage)
}

// check fills in the defaults and lists every problem at once.
func (o *Options) check() (address string, err error) {
	if o.NATSURL == "" {
		o.NATSURL = defaultURL
	}
	if o.Callouts == 0 {
		o.Callouts = defaultCallouts
	}
	var problems []error
	if o.Dir == "" || strings.ContainsFunc(o.Dir, func(r rune) bool { return r < ' ' }) {
		problems = append(problems, messages.Malformed.Because("the directory has no name, or one with control characters"))
	}
	if o.Callouts < 1 || o.Callouts > maxCallouts {
		problems = append(problems, messages.Malformed.Because("there are 1 to %d callout users", maxCallouts))
	}
	address, urlErr := listen(o.NATSURL)
	return address, errors.Join(append(problems, names.CheckSpace(o.Space), urlErr)...)
}

// parts in the order in which they come to stand. The first is the one that only
// one of several makers can place, the last makes the chain whole.
var parts = []string{offlineDir, sentinelFile, confFile, secretsDir}

// refuseStanding refuses where any part of a chain is.
func refuseStanding(dir string) error {
	var standing []string
	for _, part := range parts {
		if _, err := os.Lstat(filepath.Join(dir, part)); err == nil {
			standing = append(standing, part)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	switch {
	case len(standing) == 0:
		return nil
	case standing[len(standing)-1] == secretsDir:
		return messages.ChainStands
	default:
		return messages.ChainStands.Because("it is not whole, only %s is there; either it is being made just now, or that was "+
			"interrupted and nothing was ever issued from it: then remove these and start anew", strings.Join(standing, ", "))
	}
}

// publish moves the prepared parts into place. Until the last one is there, the
// chain does not count; when a move fails, what was moved goes back.
func publish(dir, stage string) (err error) {
	var placed []string
	defer func() {
		for _, part := range placed {
			if err != nil {
				err = errors.Join(err, os.Rename(filepath.Join(dir, part), filepath.Join(stage, part)))
			}
		}
	}()
	for _, part := range parts {
		if len(placed) > 0 {
			if _, err := os.Lstat(filepath.Join(dir, part)); err == nil {
				return messages.ChainStands.Because("%s appeared meanwhile", part)
			}
		}
		if err := os.Rename(filepath.Join(stage, part), filepath.Join(dir, part)); err != nil {
			if len(placed) == 0 && errors.Is(err, fs.ErrExist) {
				return messages.ChainStands.Because("somebody else is making it")
			}
			return err
		}
		placed = append(placed, part)
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// write prepares every part below stage.
func (c *chain) write(dir, stage, address string) error {
	sentinel, err := c.sentinel()
	if err != nil {
		return err
	}
	conf, err := c.conf(dir, address)
	if err != nil {
		return err
	}
	secrets, err := c.secrets()
	if err != nil {
		return err
	}
	offline, err := c.offline()
	if err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(stage, sentinelFile), sentinel, 0o644),
		writeFile(filepath.Join(stage, confFile), conf, 0o644),
		writeDir(filepath.Join(stage, secretsDir), secrets),
		writeDir(filepath.Join(stage, offlineDir), offline),
	)
}

// secrets are the files of the daemon.
func (c *chain) secrets() (map[string][]byte, error) {
	doc, err := c.doc.encode()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		chainName:       doc,
		observerName:    seedFile(c.observer),
		evictorName:     seedFile(c.evictor),
		presenceName:    seedFile(c.presence),
		xkeyName:        seedFile(c.xkey),
		keyringName:     []byte(c.keyring.Reveal()),
		ownerSecretName: []byte(base64.RawURLEncoding.EncodeToString([]byte(c.ownerSecret.Reveal())) + "\n"),
	}
	for a, name := range signingNames {
		files[name] = seedFile(c.accountSigning[a])
	}
	for i, key := range c.callouts {
		files[calloutName(i+1)] = seedFile(key)
	}
	return files, nil
}

// offline are the files nobody needs from day to day.
func (c *chain) offline() (map[string][]byte, error) {
	files := map[string][]byte{
		"operator.seed":         seedFile(c.operator),
		"operator-signing.seed": seedFile(c.signing),
	}
	for _, a := range accounts {
		files[strings.ToLower(string(a))+".seed"] = seedFile(c.identities[a])
	}
	for _, a := range []Account{DATA, SYS} {
		creds, err := c.breakGlass(a)
		if err != nil {
			return nil, err
		}
		files["break-glass-"+strings.ToLower(string(a))+".creds"] = creds
	}
	return files, nil
}

func seedFile(k Key) []byte { return []byte(k.Seed.Reveal() + "\n") }
