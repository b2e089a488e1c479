package scanner

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Names of the two scanners as children.
const (
	Ledger  = "ledger-scanner"
	Records = "records-scanner"
)

// Config is what a scanner needs.
type Config struct {
	Dialer *broker.Dialer
	// Stream says which authority stream; the records stream is found beside it.
	Stream stream.Config
}

// Scan asks for an enumeration under a claim. Answered by Rows, or refused with
// ScanRefused by a scanner that is not active under that claim. Only the actor of
// the claim asks, with the guard before and after.
type Scan struct {
	ClaimID string
	Ask     ledger.Scan
}

// Rows answers Scan.
type Rows struct{ Rows []ledger.Row }

// LedgerSpec describes the scanner of the authority stream as a child.
func LedgerSpec(config Config) supervisor.Spec {
	return spec(Ledger, broker.LedgerScanner(), config.Dialer, config.Stream)
}

// RecordsSpec describes the scanner of what services write as a child.
func RecordsSpec(config Config) supervisor.Spec {
	return spec(Records, broker.RecordsScanner(), config.Dialer, config.Stream.Records())
}

func spec(name string, role broker.Role, dialer *broker.Dialer, of stream.Config) supervisor.Spec {
	return supervisor.Spec{Name: name, Restart: supervisor.Fence, New: func(life *supervisor.Life) actor.Actor {
		return &scanner{life: life, role: role, dialer: dialer, of: of}
	}}
}

// scanner is one life.
type scanner struct {
	life    *supervisor.Life
	role    broker.Role
	dialer  *broker.Dialer
	of      stream.Config
	conn    *broker.Conn // nil until it is open
	scanner *stream.Scanner
	claim   string // under which it is active; empty for a candidate
	closing atomic.Bool
}

type opened struct{ conn *broker.Conn }

var errNameless = errors.New("the server did not say which connection this is")

// Receive answers GetConnection with ConnectionTuple and Scan with Rows.
func (s *scanner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *supervisor.Open:
		s.life.Go("connect", s.connect)
	case opened:
		s.conn, s.scanner = m.conn, stream.NewScanner(m.conn.NATS(), s.of)
		s.life.Opened()
	case messages.GetConnection:
		tuple, _ := s.conn.Tuple() // connect made sure that it has one
		ctx.Respond(tuple)
	case messages.ActivateScanner:
		s.claim = m.ClaimID
	case Scan:
		s.scan(ctx.Sender(), m)
	case *supervisor.Drain:
		s.life.Drained(nil)
	case *supervisor.Close:
		conn := s.conn
		s.closing.Store(true)
		s.life.Go("close", func(ctx context.Context) { s.life.ClosedWith(end(ctx, conn)) })
	}
}

// connect opens the one connection of this life, and ends the life with it.
func (s *scanner) connect(ctx context.Context) {
	conn, err := s.dialer.Dial(ctx, s.role, func(c *broker.Conn) error { return s.life.Hold(c) })
	if err == nil {
		if _, named := conn.Tuple(); !named {
			err = errNameless
		}
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.life.Tell(opened{conn})
	select {
	case <-conn.Lost():
		if !s.closing.Load() {
			s.fail(conn.Err())
		}
	case <-ctx.Done():
	}
}

func (s *scanner) fail(err error) {
	if broker.IsAway(err) {
		err = supervisor.Outage(err)
	}
	s.life.Fail(err)
}

// scan enumerates beside Receive.
func (s *scanner) scan(to *actor.PID, m Scan) {
	if s.claim == "" || m.ClaimID != s.claim {
		s.life.Reply(to, messages.ScanRefused.Because("this scanner is not active under that claim"))
		return
	}
	scanner := s.scanner
	s.life.Go("scan "+m.Ask.Filter, func(ctx context.Context) {
		rows, err := scanner.Scan(ctx, m.Ask)
		if err != nil {
			s.life.Reply(to, err)
			return
		}
		s.life.Reply(to, Rows{rows})
	})
}

func end(ctx context.Context, conn *broker.Conn) error {
	if conn == nil {
		return nil
	}
	return conn.Close(ctx)
}
