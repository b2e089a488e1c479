package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/devbroker"
	"github.com/cotal-ai/authplane/actors/devidp"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/demo"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// lockFile lies in a development directory.
const lockFile = "dev.lock"

// devService is a space with the broker and the identity provider it needs, in one
// actor system. Those two are a tree of their own, opened before the space and
// closed after it.
type devService struct {
	*space.Handle
	around *supervisor.Tree
	system *actor.ActorSystem
	lock   *os.File // held until nothing is left

	failed   chan struct{} // closed when the space or what it stands on has given up
	watching sync.WaitGroup
}

// startDev opens broker, provider and space, in that order.
func startDev(ctx context.Context, o devOptions) (*devService, error) {
	if err := claimDir(o.dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(o.dir)
	if err != nil {
		return nil, err
	}
	d := &devService{system: newSystem(), lock: lock, failed: make(chan struct{})}
	if err := d.start(ctx, o); err != nil {
		return nil, errors.Join(err, d.closeAround(context.WithoutCancel(ctx)))
	}
	return d, nil
}

func (d *devService) start(ctx context.Context, o devOptions) error {
	config, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	last, err := readAddresses(o.dir)
	if err != nil {
		return err
	}
	broker, provider, err := surroundings(o, config, last)
	if err != nil {
		return err
	}
	if d.around, err = supervisor.Start(ctx, d.system, around(broker, provider), supervisor.WithLogger(o.logger)); err != nil {
		return notMoving(o, last, err)
	}
	config.NATSURL = broker.URL()
	config.Provider = &space.ProviderConfig{Issuer: provider.Issuer(), Audience: config.Space}
	config.FaultInjection, config.Logger = o.faults, o.logger
	if err := (addresses{broker.Address(), provider.Address()}).write(o.dir); err != nil {
		return err
	}
	if d.Handle, err = space.Start(ctx, d.system, config); err != nil {
		return err
	}
	d.watching.Go(d.watch)
	return nil
}

// notMoving says what to do when broker or provider cannot have the port of last
// time. The broker tells that in words alone, so the ports are tried.
func notMoving(o devOptions, last addresses, err error) error {
	for _, address := range []string{last.Broker, last.Provider} {
		listener, taken := net.Listen("tcp", address)
		if taken == nil {
			_ = listener.Close() // nobody has used it
		}
		if address != "" && errors.Is(taken, syscall.EADDRINUSE) {
			file := shellWord(filepath.Join(o.dir, addressFile))
			return advised{err, "end what listens on " + address + ", or rm " + file + " to move (contexts must then be written anew)"}
		}
	}
	return err
}

// watch passes on the first failure of the two trees. It ends with the space.
func (d *devService) watch() {
	select {
	case <-d.around.Failed():
		close(d.failed)
	case <-d.Handle.Failed():
		close(d.failed)
	case <-d.Closed():
	}
}

// Failed is closed when the space, or what it stands on, has given up.
func (d *devService) Failed() <-chan struct{} { return d.failed }

// Err says why.
func (d *devService) Err() error { return errors.Join(d.around.Err(), d.Handle.Err()) }

// surroundings makes what the space stands on, at the addresses of last time.
func surroundings(o devOptions, config space.Config, last addresses) (*devbroker.Server, *devidp.Server, error) {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, nil, err
	}
	broker, err := devbroker.New(devbroker.Config{Dir: dir, Address: last.Broker, Logger: o.logger})
	if err != nil {
		return nil, nil, err
	}
	provider, err := devidp.New(devidp.Config{Address: last.Provider, ClientID: config.Space})
	return broker, provider, err
}

func around(broker *devbroker.Server, provider *devidp.Server) supervisor.Spec {
	return supervisor.Spec{Name: "around", Group: &supervisor.Group{Children: []supervisor.Spec{
		devbroker.Spec("broker", broker),
		devidp.Spec("provider", provider),
	}}}
}

// Record is what is told about the service.
func (d *devService) Record() service.Record { return d.Service() }

// Close closes the space and, once nothing of that is left, what it stood on.
func (d *devService) Close(ctx context.Context) error {
	err := d.Handle.Close(ctx)
	select {
	case <-d.Closed():
		d.watching.Wait()
		return errors.Join(err, d.closeAround(ctx))
	default:
		return err
	}
}

// closeAround closes broker and provider, as far as they were opened, and gives back
// the directory.
func (d *devService) closeAround(ctx context.Context) error {
	if d.around != nil {
		if err := d.around.Close(ctx); err != nil {
			return fmt.Errorf("close broker and provider: %w", err)
		}
	}
	d.system.Shutdown()
	return d.lock.Close()
}

// lockDir keeps other processes from running on the same directory: two brokers
// would spoil each other's streams. The kernel lets go of it when the process dies.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(messages.StateDirTaken.Because("%s", dir), lock.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), lock.Close())
	}
	return lock, nil
}

// devStage is where the demonstration takes place.
type devStage struct {
	options devOptions
	service *devService
}

// Start puts it up.
func (s *devStage) Start(ctx context.Context) (demo.Subject, error) {
	service, err := startDev(ctx, s.options)
	if err != nil {
		return nil, err
	}
	s.service = service
	return demoSubject{service}, nil
}

// Stop closes whatever is left.
func (s *devStage) Stop(ctx context.Context) error {
	if s.service == nil {
		return nil
	}
	return s.service.Close(ctx)
}

// demoSubject closes the space alone, so that the demonstration can look at what is
// left while the broker still stands.
type demoSubject struct{ *devService }

func (s demoSubject) Close(ctx context.Context) error { return s.Handle.Close(ctx) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
