package space

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/exchange"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	ledgerclaim "github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/reader"
	"github.com/cotal-ai/authplane/actors/readiness"
	"github.com/cotal-ai/authplane/actors/registrar"
	"github.com/cotal-ai/authplane/actors/retirement"
	"github.com/cotal-ai/authplane/messages"
)

// parts are what the actors of a space are made from: keys read once, values that
// outlive their lives, and no connection.
type parts struct {
	state        *stateDir
	instance     string
	installation *installation // of the authority stream
	records      *installation // of the records stream
	registered   registrar.Once
	run          ledgerclaim.Run
	view         claim.View
	machine      string
	unreadable   reader.Unreadable
	gates        reader.Gates
	lanes        *stream.Lanes
	troubles     retirement.Troubles
	capability   messages.Secret
	material     *trust.Material
	keyring      *identity.Keyring
	provider     *identity.Provider // nil without one
	dialer       *broker.Dialer
	opener       *connect.Opener
	judge        *connect.Judge
	answerer     *connect.Answerer
	denials      *connect.Denials
	loopback     *exchange.Address
	public       *exchange.PublicConfig // nil without a public face
	platform     *platform.Door
	readiness    *readiness.Kept
}

// gather reads and checks everything before the first connection is opened.
func gather(ctx context.Context, config Config, state *stateDir) (*parts, error) {
	p := &parts{state: state, lanes: stream.NewLanes(stream.MaxLanes), denials: &connect.Denials{}, capability: identity.NewCapability()}
	for _, step := range []func(context.Context, Config) error{p.readState, p.readKeys, p.makeProvider, p.makeDialer, p.makeCallout, p.makeFaces, p.makePlatform} {
		if err := step(ctx, config); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *parts) readState(context.Context, Config) (err error) {
	if p.instance, err = p.state.instance(); err != nil {
		return err
	}
	p.installation = &installation{state: p.state, file: installationFile}
	p.records = &installation{state: p.state, file: recordsFile}
	if p.machine, err = os.Hostname(); err != nil {
		p.machine = "unknown" // it is told to people and decides nothing
	}
	return nil
}

func (p *parts) readKeys(ctx context.Context, config Config) (err error) {
	secrets := config.Secrets
	if secrets == nil {
		secrets = trust.Directory(config.SecretsDir)
	}
	load := trust.Load
	if config.Eviction == EvictionExpiry {
		load = trust.LoadWithoutSystem
	}
	if p.material, err = load(ctx, secrets, config.Space); err != nil {
		return err
	}
	for _, i := range []*installation{p.installation, p.records} {
		if err := i.load(p.material.InstallID); err != nil {
			return err
		}
	}
	p.keyring, err = identity.OpenKeyring(config.Space, p.material.Keyring)
	return err
}

func (p *parts) makeProvider(_ context.Context, config Config) (err error) {
	if config.Provider == nil {
		return nil
	}
	p.provider, err = identity.NewProvider(identity.ProviderConfig{
		Issuer:     config.Provider.Issuer,
		Audience:   cmp.Or(config.Provider.Audience, config.Space),
		Algorithms: config.Provider.Algorithms,
		JWKSURL:    config.Provider.JWKSURL,
		JWKS:       config.Provider.JWKS,
	})
	return err
}

func (p *parts) makeDialer(_ context.Context, config Config) (err error) {
	p.dialer, err = broker.NewDialer(broker.Config{
		URL: config.NATSURL, Space: config.Space, Material: p.material, Logger: config.Logger,
		StandingLifetime: config.ConnectionLifetime,
	})
	return err
}

func (p *parts) makeCallout(_ context.Context, config Config) (err error) {
	p.opener, err = connect.NewOpener(connect.OpenerConfig{XKey: p.material.XKey.Seed, Servers: config.Servers})
	if err != nil {
		return err
	}
	profiles, err := connect.NewProfiles(config.Space, nil)
	if err == nil {
		err = profiles.ForMachines(config.Space, footprint.Uses(config.Footprint))
	}
	if err != nil {
		return err
	}
	p.judge = connect.NewBoundedJudge(profiles, config.BearerLifetime)
	p.answerer, err = connect.NewAnswerer(p.accountKey(trust.AUTH), p.accountKey(trust.DATA))
	return err
}

func (p *parts) accountKey(a trust.Account) connect.AccountKey {
	return connect.AccountKey{Account: p.material.Account(a), Signing: p.material.Signing[a].Seed}
}

func (p *parts) makeFaces(_ context.Context, config Config) error {
	p.loopback = exchange.NewAddress(config.Listen)
	if config.Public == nil {
		return nil
	}
	sentinel, err := os.ReadFile(config.SentinelCreds)
	if err != nil {
		return messages.Malformed.Because("public: clients need the sentinel creds: %v", err)
	}
	p.public = &exchange.PublicConfig{
		Address:  exchange.NewAddress(config.Public.Listen),
		URL:      strings.TrimSuffix(config.Public.URL, "/"),
		NATSURL:  cmp.Or(config.Public.ClientNATSURL, config.NATSURL),
		Sentinel: string(sentinel),
	}
	if config.Public.CertFile == "" {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(config.Public.CertFile, config.Public.KeyFile)
	if err != nil {
		return messages.Malformed.Because("public: tls: %v", err)
	}
	p.public.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	return nil
}

func (p *parts) makePlatform(_ context.Context, config Config) (err error) {
	p.readiness = readiness.New(p.dialer)
	p.platform, err = platform.Open(config.Space, p.material.Account(trust.DATA), p.material.OwnerSecret, config.Platform)
	return err
}

// calloutUsers are the public keys of those who may answer connects.
func (p *parts) calloutUsers() []string {
	keys := make([]string, len(p.material.Callouts))
	for i, user := range p.material.Callouts {
		keys[i] = user.Public
	}
	return keys
}

// publicURL is how the public face is reached; empty without one.
func (p *parts) publicURL() string {
	switch {
	case p.public == nil:
		return ""
	case p.public.URL != "":
		return p.public.URL
	}
	return p.public.Address.URL()
}

// installation remembers, in the state directory, which life of a stream this
// process has met.
type installation struct {
	state *stateDir
	file  string

	mu  sync.Mutex
	met stream.Installation
}

// load reads what was remembered. A state directory of another installation is
// refused: it belongs to another service.
func (i *installation) load(installID string) error {
	found, err := i.state.read(i.file, &i.met)
	if err != nil {
		return err
	}
	if found && i.met.InstallID != installID {
		return messages.StreamForeign.Because("the state directory %s belongs to another installation", i.state.path)
	}
	i.met.InstallID = installID
	return nil
}

// Remembered tells which stream is ours: its id, and when it was made once it has
// been met.
func (i *installation) Remembered() stream.Installation {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.met
}

// Remember keeps which stream was met; durable when it returns.
func (i *installation) Remember(met stream.Installation) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.state.writeJSON(i.file, met); err != nil {
		return fmt.Errorf("remember the stream: %w", err)
	}
	i.met = met
	return nil
}
