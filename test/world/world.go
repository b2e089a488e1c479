package world

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/cotal-ai/authplane/actors/devidp"
	"github.com/cotal-ai/authplane/actors/space"
)

// Patience bounds every wait of a test. It is only ever reached by a failure.
const Patience = 30 * time.Second

// World is one stage.
type World struct {
	testing.TB
	Dir      string
	Init     space.Initialised
	Broker   *server.Server
	Provider *devidp.Server
	System   *actor.ActorSystem
	Config   space.Config
	Space    *space.Handle

	options func(*server.Options)
	port    int // where the broker listens
}

// New builds the stage without opening the space: a broker and a provider that
// live until the test ends, and a Config that change may alter.
func New(t testing.TB, change ...func(*space.Config)) *World {
	t.Helper()
	return NewOn(t, func(*server.Options) {}, change...)
}

// NewOn is New on a broker with further doors: options alters what the installation's
// own configuration says.
func NewOn(t testing.TB, options func(*server.Options), change ...func(*space.Config)) *World {
	t.Helper()
	w := &World{options: options, TB: t, Dir: t.TempDir(), System: actor.NewActorSystem(actor.WithLoggerFactory(silent))}
	t.Cleanup(w.System.Shutdown)
	var err error
	w.Init, err = space.Init(w.Context(), space.InitOptions{Dir: w.Dir, Space: "main", NATSURL: "nats://127.0.0.1:0"})
	w.must(err)
	w.startBroker()
	w.startProvider()
	w.Config = space.Config{
		Space: "main", NATSURL: "nats://" + w.Broker.Addr().String(), StateDir: filepath.Join(w.Dir, "state"),
		SecretsDir: w.Init.SecretsDir, SentinelCreds: w.Init.SentinelCreds,
		Provider:       &space.ProviderConfig{Issuer: w.Provider.Issuer()},
		FaultInjection: true, Logger: Logger(t),
	}
	for _, c := range change {
		c(&w.Config)
	}
	return w
}

// Open builds the stage and opens the space, which is closed, and checked to have
// closed, when the test ends.
func Open(t testing.TB, change ...func(*space.Config)) *World {
	t.Helper()
	w := New(t, change...)
	w.Start()
	return w
}

// Start opens the space.
func (w *World) Start() {
	w.Helper()
	var err error
	w.Space, err = space.Start(w.Context(), w.System, w.Config)
	w.must(err)
	w.Cleanup(w.Close)
}

// Beside opens the same space once more, as another process with a state directory
// of its own would.
func (w *World) Beside() *World {
	w.Helper()
	other := *w
	other.Config.StateDir = filepath.Join(w.TempDir(), "state")
	other.Start()
	return &other
}

// Close closes the space, if it is open, and insists that nothing of it is left.
func (w *World) Close() {
	w.Helper()
	select {
	case <-w.Space.Closed():
		return
	default:
	}
	w.must(w.Space.Close(w.Context()))
	select {
	case <-w.Space.Closed():
	case <-time.After(Patience):
		w.Fatalf("closed, but these have not ended: %v", w.Space.Connections())
	}
	for _, c := range w.Space.Connections() {
		if !c.Ended {
			w.Errorf("%s has not ended", c.Label)
		}
	}
}

// Context ends when the test's patience does.
func (w *World) Context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	w.Cleanup(cancel)
	return ctx
}

func (w *World) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// startBroker runs the server that the installation's own configuration describes.
func (w *World) startBroker() {
	w.Helper()
	options, err := server.ProcessConfigFile(w.Init.ServerConfig)
	w.must(err)
	w.runBroker(options)
	w.Cleanup(func() { w.StopBroker() })
}

func (w *World) runBroker(options *server.Options) {
	w.Helper()
	options.NoSigs, options.NoLog = true, true
	w.options(options)
	broker, err := server.NewServer(options)
	w.must(err)
	go broker.Start() // ends with Shutdown, which StopBroker waits for
	if !broker.ReadyForConnections(Patience) {
		w.Fatal("the broker does not come up")
	}
	w.Broker, w.port = broker, broker.Addr().(*net.TCPAddr).Port
}

// StopBroker ends the broker and waits for it.
func (w *World) StopBroker() {
	w.Broker.Shutdown()
	w.Broker.WaitForShutdown()
}

// RestartBroker starts a stopped broker again, where it listened before.
func (w *World) RestartBroker() {
	w.Helper()
	options, err := server.ProcessConfigFile(w.Init.ServerConfig)
	w.must(err)
	options.Port = w.port
	w.runBroker(options)
}

func (w *World) startProvider() {
	w.Helper()
	var err error
	w.Provider, err = devidp.New(devidp.Config{ClientID: "main"})
	w.must(err)
	run, err := w.Provider.Start(w.Context())
	w.must(err)
	w.Cleanup(func() { w.must(run.Stop(context.Background())) })
}

// Logger logs to stderr when AUTHPLANE_TEST_LOG is set, and nowhere otherwise.
func Logger(testing.TB) *slog.Logger {
	if os.Getenv("AUTHPLANE_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func silent(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }

// NoConnections waits until the broker has no client connection any more.
func (w *World) NoConnections() {
	w.Helper()
	deadline := time.Now().Add(Patience)
	for w.Broker.NumClients() > 0 {
		if time.Now().After(deadline) {
			w.Fatalf("%d connections are left", w.Broker.NumClients())
		}
		runtime.Gosched()
	}
}
