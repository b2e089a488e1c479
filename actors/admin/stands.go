package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/rail"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

const (
	// maxQuestions is how many are taken in; one more is answered with Busy.
	maxQuestions = 2048
	// maxWorking is how many of them are worked on at once. The others wait for their
	// turn, but no longer than turnWithin: then they are answered with Busy.
	maxWorking = 64
	turnWithin = 10 * time.Second
	// maxWaiting is how many wait for an operation, which takes no turn; one more is told
	// at once how far its operation is.
	maxWaiting = 1024
	// flushWithin bounds the wait for the broker to have heard.
	flushWithin = 5 * time.Second
	// version of what the rail speaks.
	version = "1.0.0"
)

// stands are the places where the rail is served: the newest connection, and while a
// renewal is under way the one before it. It is safe for concurrent use.
type stands struct {
	life  *supervisor.Life
	rail  *rail.Rail
	space string
	// questions holds one word for each that is taken in, turns for each that is worked
	// on, and waiting for each that waits for an operation; the capacities are how many may.
	questions, turns, waiting chan struct{}
	// ctx ends with the life, or when the rail falls silent.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	serving bool // whether the plane is held
	silent  bool
	newest  *broker.Conn // nil before the first
	// services are those that were not stopped, by the connection they are on.
	services map[*broker.Conn]micro.Service
}

func newStands(life *supervisor.Life, r *rail.Rail, space string) *stands {
	s := &stands{life: life, rail: r, space: space, services: map[*broker.Conn]micro.Service{}, questions: make(chan struct{}, maxQuestions),
		turns: make(chan struct{}, maxWorking), waiting: make(chan struct{}, maxWaiting)}
	s.ctx, s.cancel = context.WithCancel(life.Context())
	return s
}

// join takes a new connection in, which serves when the rail does.
func (s *stands) join(ctx context.Context, conn *broker.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving && !s.silent {
		if err := s.add(ctx, conn); err != nil {
			return err
		}
	}
	s.newest = conn
	return nil
}

// serve serves from now on.
func (s *stands) serve(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = true
	if s.newest == nil || s.silent {
		return nil
	}
	return s.add(ctx, s.newest)
}

// add has a connection hear questions; the broker knows it when it returns. It needs
// the lock.
func (s *stands) add(ctx context.Context, conn *broker.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	service, err := micro.AddService(conn.NATS(), micro.Config{
		Name: broker.AdminService, Version: version, QueueGroup: broker.AdminService,
		Description: "ends incarnations of the space " + s.space,
	})
	if err != nil {
		return fmt.Errorf("serve the rail: %w", err)
	}
	err = errors.Join(
		service.AddEndpoint("retire", micro.HandlerFunc(s.retire), micro.WithEndpointSubject(broker.AnyRetireSubject(s.space))),
		service.AddEndpoint("describe", micro.HandlerFunc(s.describe), micro.WithEndpointSubject(broker.DescribeSubject(s.space))),
		conn.NATS().FlushWithContext(ctx),
	)
	if err != nil {
		return fmt.Errorf("serve the rail: %w", errors.Join(err, service.Stop()))
	}
	s.services[conn] = service
	return nil
}

// leave lets go of an old connection: it hears nothing any more, and what it has
// heard is taken up. Answers leave on the newest one.
func (s *stands) leave(ctx context.Context, old *broker.Conn) {
	s.mu.Lock()
	service := s.services[old]
	delete(s.services, old)
	s.mu.Unlock()
	s.stop(ctx, old, service)
}

// stop waits until what a connection was asked has been taken up.
func (s *stands) stop(ctx context.Context, conn *broker.Conn, service micro.Service) {
	if service == nil {
		return
	}
	if err := service.Stop(); err != nil {
		s.life.Log().Warn("the rail did not stop cleanly", "connection", conn.Label(), "error", err)
	}
	tick := time.NewTicker(time.Millisecond) // nothing tells when a subscription has drained
	defer tick.Stop()
	for conn.NATS().IsConnected() && conn.NATS().NumSubscriptions() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// end stops serving for good: what is worked on is answered with how far it is, and
// the answers have left when it returns.
func (s *stands) end(ctx context.Context) {
	s.mu.Lock()
	s.silent = true
	services, newest := s.services, s.newest
	s.services = map[*broker.Conn]micro.Service{}
	s.mu.Unlock()
	for conn, service := range services {
		s.stop(ctx, conn, service)
	}
	s.cancel()
	for range maxQuestions { // whoever has every place is alone
		select {
		case s.questions <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	if newest != nil && newest.NATS().IsConnected() {
		ctx, cancel := context.WithTimeout(ctx, flushWithin)
		defer cancel()
		_ = newest.NATS().FlushWithContext(ctx) // the close says if it failed
	}
}

func (s *stands) retire(request micro.Request) {
	s.take("retire", request, func(ctx context.Context, q rail.Question) (any, error) { return s.rail.Retire(ctx, q) })
}

func (s *stands) describe(request micro.Request) {
	s.take("describe", request, func(_ context.Context, q rail.Question) (any, error) { return s.rail.Describe(q) })
}

// take works on a question beside the one that hears them.
func (s *stands) take(name string, request micro.Request, do func(context.Context, rail.Question) (any, error)) {
	q := rail.Question{Subject: request.Subject(), Header: request.Headers(), Body: request.Data()}
	select {
	case s.questions <- struct{}{}:
	default:
		s.answer(request.Reply(), nil, rail.Refuse(messages.Busy))
		return
	}
	s.life.Go(name, func(context.Context) {
		defer func() { <-s.questions }()
		value, err := s.inTurn(q, do)
		s.answer(request.Reply(), value, err)
	})
}

// inTurn works on a question when its turn has come.
func (s *stands) inTurn(q rail.Question, do func(context.Context, rail.Question) (any, error)) (any, error) {
	late := time.NewTimer(turnWithin)
	defer late.Stop()
	select {
	case s.turns <- struct{}{}:
	case <-late.C:
		return nil, rail.Refuse(messages.Busy)
	case <-s.ctx.Done():
		return nil, rail.Refuse(messages.PlaneAway)
	}
	giveBack := sync.OnceFunc(func() { <-s.turns })
	defer giveBack()
	leave := func() {}
	defer func() { leave() }()
	q.Waits = func() bool {
		select {
		case s.waiting <- struct{}{}:
			leave = func() { <-s.waiting }
			giveBack()
			return true
		default:
			return false
		}
	}
	return do(s.ctx, q)
}

// answer says yes or no over the newest connection: the one that heard the question
// may have been renewed away.
func (s *stands) answer(to string, value any, err error) {
	s.mu.Lock()
	conn := s.newest
	s.mu.Unlock()
	m := &nats.Msg{Subject: to}
	if err == nil {
		m.Data = encode(value)
	} else {
		m.Header, m.Data = refusal(err)
		s.log(err)
	}
	if conn == nil || !answerable(to) {
		return
	}
	if err := conn.NATS().PublishMsg(m); err != nil && s.ctx.Err() == nil {
		s.life.Log().Warn("an answer of the rail was lost; whoever asks again gets it", "error", err)
	}
}

// log tells operators of failures of ours.
func (s *stands) log(err error) {
	if entry := messages.Describe(err); entry.Code == messages.Internal {
		s.life.Log().Error("the rail failed", "error", err)
	} else {
		s.life.Log().Debug("the rail refused", "reason", entry.Reason, "error", err)
	}
}
