package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/evict"
	"github.com/cotal-ai/authplane/actors/internal/face"
	"github.com/cotal-ai/authplane/supervisor"
)

// exchange is one life. Each of its servers belongs to a task of the life, so that
// the end of the life waits until nothing of them is left.
type exchange struct {
	life    *supervisor.Life
	servers []*server
	// unbound counts the servers that do not listen yet.
	unbound atomic.Int32
}

func newExchange(life *supervisor.Life, config Config) *exchange {
	faces := faceConfig(life, config)
	e := &exchange{life: life}
	e.servers = append(e.servers, newServer(life, config.Address, nil, face.Loopback(faces, face.LoopbackConfig{
		Control: config.Control, Instances: config.Instances, Controllers: config.Controllers, Runs: config.Runs, Capability: config.Capability,
		Enrolments:     config.Enrolments,
		FaultInjection: config.FaultInjection, MetricsPage: config.MetricsPage,
	})))
	if p := config.Public; p != nil {
		url := p.Address.URL
		if p.URL != "" {
			url = func() string { return p.URL }
		}
		e.servers = append(e.servers, newServer(life, p.Address, p.TLS, face.Public(faces, face.PublicConfig{
			URL: url, NATSURL: p.NATSURL, Sentinel: p.Sentinel, ProviderIssuer: config.Issuer,
			Controllers: config.Controllers, Verifier: config.Keys, Runs: config.ControllerRuns,
		})))
	}
	e.unbound.Store(int32(len(e.servers)))
	return e
}

func faceConfig(life *supervisor.Life, config Config) face.Config {
	plane := authority{reader: life.Ref(config.Reader), writer: life.Ref(config.Writer)}
	bridge := &face.Bridge{Issuer: config.Issuer, OwnerSecret: config.OwnerSecret, Authority: plane, Signer: config.Keys, Longest: config.BearerLifetime}
	if config.Provider != nil {
		bridge.Provider = config.Provider
	}
	var ends time.Duration
	if config.Outlives > 0 {
		ends = evict.Outlived(config.Outlives)
	}
	return face.Config{
		Space: config.Space, EndsWithin: ends, Authority: plane,
		Operations: operations{writer: life.Ref(config.Writer), desk: life.Ref(config.Desk), observer: life.Ref(config.Observer)},
		Bridge:     bridge, Keys: config.Keys,
		Metrics: config.Metrics, Logger: life.Log(),
	}
}

// Receive opens the faces, lets them finish what they accepted, and closes them.
func (e *exchange) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		for _, s := range e.servers {
			e.life.Go(s.face.Name()+" face", func(ctx context.Context) { e.serve(ctx, s) })
		}
	case *supervisor.Drain:
		e.life.Go("drain", func(ctx context.Context) { e.life.Drained(e.drain(ctx, m.Deadline)) })
	case *supervisor.Close:
		e.life.Go("close", func(context.Context) {
			e.close()
			e.life.ClosedWith(nil)
		})
	}
}

// serve is the task of one server.
func (e *exchange) serve(ctx context.Context, s *server) {
	err := s.run(ctx, func() {
		if e.unbound.Add(-1) == 0 {
			e.life.Opened()
		}
	})
	if err != nil {
		e.life.Fail(fmt.Errorf("%s face: %w", s.face.Name(), err))
	}
}

// drain stops accepting on every face, and gives what was accepted its time. What
// is left then is cut off: that much is promised, and no more.
func (e *exchange) drain(ctx context.Context, deadline time.Time) error {
	// Of the time there is, some is left for the cut, and some for the close after it.
	grace := time.Until(deadline) / 10
	ctx, cancel := context.WithDeadline(ctx, earlier(time.Now().Add(acceptedWithin), deadline.Add(-3*grace)))
	defer cancel()
	ended := make(chan error, len(e.servers)) // one answer of each
	for _, s := range e.servers {
		go func() { ended <- s.drain(ctx, grace) }() // received below
	}
	var failures []error
	for range e.servers {
		failures = append(failures, <-ended)
	}
	return errors.Join(failures...)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// close waits until nothing of any server is left.
func (e *exchange) close() {
	for _, s := range e.servers {
		s.stop()
	}
	for _, s := range e.servers {
		<-s.gone
	}
}
