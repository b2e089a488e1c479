package client

import (
	"context"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/messages"
)

// Vigils keep, for a client that writes, the proof that the authority stream behind
// each of its connections is still ours. The zero value is ready, and safe for
// concurrent use.
type Vigils struct{ kept sync.Map } // *broker.Conn to *stream.Vigil

// Keep begins the vigil over a new connection, which Forget ends.
func (v *Vigils) Keep(conn *broker.Conn, of stream.Config, remembered func() stream.Installation) {
	v.kept.Store(conn, stream.NewVigil(conn.NATS(), of, remembered))
}

// Forget ends the vigil over an old connection.
func (v *Vigils) Forget(_ context.Context, old *broker.Conn) { v.kept.Delete(old) }

// Hold makes sure that the stream is still ours before anything is read or written
// over conn: what is acknowledged must be found again. Otherwise it refuses, as
// Unproved, and a stream that is not ours any more ends the client's life.
func (v *Vigils) Hold(ctx context.Context, c *Client, conn *broker.Conn) error {
	vigil, found := v.kept.Load(conn)
	if !found {
		return messages.Unproved
	}
	err := vigil.(*stream.Vigil).Hold(ctx)
	if Foreign(err) {
		c.Fail(err)
		return messages.Unproved.From(err)
	}
	return err
}
