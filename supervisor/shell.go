package supervisor

import (
	"github.com/asynkron/protoactor-go/actor"
)

// A shell is the actor that the library runs. It holds the leaf, and lets no panic
// out, so that the library's own supervision never acts.
type shell struct {
	life    *Life
	ctx     *leafContext
	receive func() // hands the current message to the leaf
}

type killMessage struct{}

func (s *shell) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *delivery:
		s.handle(m)
	case *actor.Started:
		s.start(c)
	case *actor.Stopping:
		s.life.die(ErrStopped) // nothing if the life is over, as it is when the kit stops it
		s.pass()
	case *actor.Stopped:
		defer close(s.life.stopped)
		s.pass()
	default:
		s.pass()
	}
}

// start makes the leaf. It runs here, and not where the actor is spawned, so that a
// panic in it is a death.
func (s *shell) start(c actor.Context) {
	l := s.life
	s.ctx = &leafContext{Context: c, life: l}
	l.guard("new", func() {
		s.ctx.inner = l.seat.spec.New(l)
		s.receive = s.ctx.receiver()
	})
	s.pass()
}

// pass hands on what the library says.
func (s *shell) pass() {
	if s.receive != nil {
		s.life.guard("receive", s.receive)
	}
}

func (s *shell) handle(d *delivery) {
	// In this order, so that who is told that nobody has seen a message can rely on it:
	// the mailbox looks at seen after the life is over, and nothing is received then.
	d.seen.Store(true)
	if s.life.ended() || s.receive == nil {
		d.answer(s.life.tree, s.life.addr.unavailable)
		return
	}
	s.ctx.current = d
	defer func() { s.ctx.current = nil }()
	s.life.guard("receive", func() {
		if _, kill := d.msg.(killMessage); kill {
			panic(ErrKilled)
		}
		s.receive()
	})
}

// lifeStrategy serves actors that a leaf spawned below itself: the failure of one is
// the leaf's death.
type lifeStrategy struct{ life *Life }

func (s lifeStrategy) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, _ any) {
	supervisor.StopChildren(child)
	s.life.die(&PanicError{Value: reason, Where: "a child actor"})
}
