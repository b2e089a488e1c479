package broker

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
)

// JetStream's answers when it has no leader to answer for it.
const (
	codeNotAvailable  = 10008 // JetStream system temporarily unavailable
	codeNoPeers       = 10005 // no suitable peers for placement
	codeClusterNoLead = 10009 // not the leader
)

// IsAway reports whether an error means that no server, or no JetStream leader,
// answered in time: a failure that is not the actor's own and is retried for ever.
// A refusal, whatever it says, is an answer. A context that was cancelled is not
// away either; one whose deadline passed is.
func IsAway(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	for _, away := range []error{
		messages.BrokerAway, nats.ErrNoServers, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrDisconnected,
		nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil {
		switch api.APIError().ErrorCode {
		case codeNotAvailable, codeNoPeers, codeClusterNoLead:
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

// away marks an error as the catalogue's BrokerAway when IsAway says so.
func away(err error) error {
	if IsAway(err) && !errors.Is(err, messages.BrokerAway) {
		return messages.BrokerAway.From(err)
	}
	return err
}
