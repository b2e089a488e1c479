// Package probe asks a NATS micro service how it is. It knows no actor and keeps no
// connection.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/messages"
)

// The metadata by which a service says which process of which instance it is.
const (
	MetadataInstance = "instance"
	MetadataEpoch    = "epoch"
)

// hearFor bounds how long a service is listened for that does not answer.
const hearFor = 2 * time.Second

// Ask finds the process of an instance among all that serve its endpoint, and asks how
// it is. A process that does not answer, or no more, is an answer; BrokerAway is none.
func Ask(ctx context.Context, conn *nats.Conn, of messages.ReadReadiness) (messages.Readiness, error) {
	ctx, cancel := context.WithTimeout(ctx, hearFor)
	defer cancel()
	silent := messages.Readiness{Endpoint: of.Endpoint, Instance: of.Instance, Epoch: of.Epoch}
	found, err := find(ctx, conn, of)
	if err != nil || found.ID == "" {
		return silent, err
	}
	var info micro.Info
	var stats micro.Stats
	for verb, into := range map[string]any{"INFO": &info, "STATS": &stats} {
		answered, err := one(ctx, conn, "$SRV."+verb+"."+of.Endpoint+"."+found.ID, into)
		if err != nil || !answered {
			return silent, err
		}
	}
	answer := silent
	answer.Serving, answer.Version, answer.Started = true, info.Version, stats.Started
	counted := map[string]*micro.EndpointStats{}
	for _, s := range stats.Endpoints {
		counted[s.Name] = s
	}
	for _, e := range info.Endpoints {
		served := messages.ServedEndpoint{Name: e.Name, Subject: e.Subject}
		if s := counted[e.Name]; s != nil {
			served.Requests, served.Errors, served.Average = s.NumRequests, s.NumErrors, s.AverageProcessingTime
		}
		answer.Endpoints = append(answer.Endpoints, served)
	}
	return answer, nil
}

// find listens to all that answer to the service's name, until the one is heard; the
// zero Ping if it is not.
func find(ctx context.Context, conn *nats.Conn, of messages.ReadReadiness) (micro.Ping, error) {
	inbox := conn.NewInbox()
	answers, err := conn.SubscribeSync(inbox)
	if err != nil {
		return micro.Ping{}, messages.BrokerAway.From(err)
	}
	defer func() { _ = answers.Unsubscribe() }() // it fails only with the connection
	if err := conn.PublishRequest("$SRV.PING."+of.Endpoint, inbox, nil); err != nil {
		return micro.Ping{}, messages.BrokerAway.From(err)
	}
	epoch := strconv.FormatUint(of.Epoch, 10)
	for {
		m, err := answers.NextMsgWithContext(ctx)
		switch {
		case nobody(err):
			return micro.Ping{}, nil
		case err != nil:
			return micro.Ping{}, messages.BrokerAway.From(err)
		}
		var ping micro.Ping
		if json.Unmarshal(m.Data, &ping) == nil && isToken(ping.ID) &&
			ping.Metadata[MetadataInstance] == of.Instance && ping.Metadata[MetadataEpoch] == epoch {
			return ping, nil
		}
	}
}

// one asks the one process; false if it does not answer, or not in the form it has to.
func one(ctx context.Context, conn *nats.Conn, subject string, into any) (bool, error) {
	m, err := conn.RequestWithContext(ctx, subject, nil)
	switch {
	case nobody(err):
		return false, nil
	case err != nil:
		return false, messages.BrokerAway.From(err)
	}
	return json.Unmarshal(m.Data, into) == nil, nil
}

// nobody says that whoever was asked did not answer, and the broker did its part.
func nobody(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded)
}

// isToken reports whether an id may stand in a subject.
func isToken(id string) bool {
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return id != ""
}
