package stream

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Vigil keeps, for whoever writes over a connection, the proof that the stream is
// still the one it was: whose it is, and its shape. A proof holds for a moment and
// for one life of the connection; the next one is made by the first who needs it.
// It is safe for concurrent use.
type Vigil struct {
	conn       *nats.Conn
	cfg        Config
	remembered func() Installation

	mu   sync.Mutex
	last proof
}

// NewVigil watches the stream of cfg over conn, which stays the caller's. remembered
// tells which life of the stream is ours.
func NewVigil(conn *nats.Conn, cfg Config, remembered func() Installation) *Vigil {
	return &Vigil{conn: conn, cfg: cfg, remembered: remembered}
}

// Hold returns nil if the stream was proved at most DefaultProveEvery ago on this
// life of the connection, and proves it otherwise. It fails as Prove does.
func (v *Vigil) Hold(ctx context.Context) error {
	v.mu.Lock() // whoever comes meanwhile waits for the proof that is being made
	defer v.mu.Unlock()
	began, life := time.Now(), v.conn.Stats().Reconnects
	if v.last.life == life && !v.last.at.IsZero() && began.Sub(v.last.at) <= DefaultProveEvery {
		return nil
	}
	if err := Prove(ctx, v.conn, v.cfg, v.remembered()); err != nil {
		return err
	}
	v.last = proof{at: began, life: life}
	return nil
}
