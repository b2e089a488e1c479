package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/messages"
)

func TestIsAway(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("anything"), false},
		{context.Canceled, false},
		{errors.Join(context.Canceled, nats.ErrNoServers), false},
		{nats.ErrAuthorization, false},
		{nats.ErrAuthExpired, false},
		{nats.ErrPermissionViolation, false},
		{jetstream.ErrStreamNotFound, false},
		{jetstream.ErrJetStreamNotEnabledForAccount, false},
		{&jetstream.APIError{Code: 400, ErrorCode: 10071}, false},
		{messages.Contended, false},

		{messages.BrokerAway, true},
		{context.DeadlineExceeded, true},
		{nats.ErrNoServers, true},
		{nats.ErrTimeout, true},
		{nats.ErrNoResponders, true},
		{jetstream.ErrNoStreamResponse, true},
		{nats.ErrConnectionClosed, true},
		{nats.ErrReconnectBufExceeded, true},
		{io.EOF, true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, true},
		{&jetstream.APIError{Code: 503, ErrorCode: 10008}, true},
		{&jetstream.APIError{Code: 503, ErrorCode: 10009}, true},
	} {
		for _, err := range []error{tc.err, fmt.Errorf("while at it: %w", tc.err)} {
			if tc.err == nil {
				err = nil
			}
			if got := broker.IsAway(err); got != tc.want {
				t.Errorf("%v is away: %v", err, got)
			}
		}
	}
}

// In a cluster a connection moves on to the next server before it counts as lost.
func TestAConnectionMovesOnWhenItsServerStops(t *testing.T) {
	dir := natsdtest.Chain(t, "acme")
	space := &natsdtest.Space{Name: "acme", Dir: dir, Material: natsdtest.Load(t, dir, "acme")}
	group := natsdtest.Cluster(t, dir, 3)
	space.Server = group.Server(0)
	c := dial(t, dialer(t, space, func(c *broker.Config) { c.URL = group.URL() }), broker.Reader(instance))
	first := c.ServerID()
	for i := range group.Size() {
		if group.Server(i).ID() == first {
			natsdtest.Stop(t, group.Server(i))
		}
	}
	natsdtest.Eventually(t, "it is on another server", func() error {
		if now := c.ServerID(); now == "" || now == first {
			return errors.New("not yet")
		}
		return nil
	})
	if happened(c.Lost()) {
		t.Errorf("it counts as lost: %v", c.Err())
	}
}
