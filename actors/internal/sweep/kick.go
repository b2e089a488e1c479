package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

// Kick has servers drop connections, all at once, over a connection to the system
// account that may kick, and returns what each server answered by the time ctx ends
// or PagePatience has passed, in the order given. Nothing follows from a kick but that
// the server answered: only a sweep proves that somebody is gone. An error means
// that not all could be asked.
func Kick(ctx context.Context, nc *nats.Conn, connections []messages.ConnectionRef) ([]messages.KickResult, error) {
	ctx, cancel := context.WithTimeout(ctx, PagePatience)
	defer cancel()
	results := make([]messages.KickResult, len(connections))
	var questions []question
	var asked []int // the result of each question
	for i, c := range connections {
		results[i] = messages.KickResult{ConnectionRef: c, Outcome: messages.KickSilent}
		if !IsServerID(c.ServerID) || c.ClientID == 0 {
			results[i].Outcome, results[i].Note = messages.KickRefused, "it is not the name of a connection"
			continue
		}
		questions = append(questions, kick(c))
		asked = append(asked, i)
	}
	open := len(questions)
	if open == 0 {
		return results, nil
	}
	err := gather(ctx, nc, questions, func(number int, m *nats.Msg) bool {
		r := &results[asked[number]]
		if r.Outcome != messages.KickSilent {
			return false
		}
		r.Outcome, r.Note = readKick(m, r.ServerID)
		open--
		return open == 0
	})
	if err == nil && open == len(questions) {
		err = Forbidden(nc)
	}
	return results, err
}

func kick(c messages.ConnectionRef) question {
	return question{subject: "$SYS.REQ.SERVER." + c.ServerID + ".KICK", body: fmt.Appendf(nil, `{"cid":%d}`, c.ClientID)}
}

// readKick tells what a server's answer to a kick says. That the connection is
// absent is told by text alone.
func readKick(m *nats.Msg, serverID string) (messages.KickOutcome, string) {
	const absent = "no such client"
	if nobodyThere(m) {
		return messages.KickNoServer, ""
	}
	var e envelope
	if err := json.Unmarshal(m.Data, &e); err != nil {
		return messages.KickRefused, fmt.Sprintf("the answer cannot be read: %v", err)
	}
	switch {
	case e.Server == nil || e.Server.ID != serverID:
		return messages.KickRefused, "the answer is another server's"
	case e.Error == nil:
		return messages.KickDone, ""
	case strings.Contains(e.Error.Description, absent):
		return messages.KickAbsent, ""
	default:
		return messages.KickRefused, e.Error.String()
	}
}

// ProveKick makes sure that the connection may kick, by asking its own server to
// drop a connection that no server has.
func ProveKick(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, PagePatience)
	defer cancel()
	answered := false
	q := kick(messages.ConnectionRef{ServerID: nc.ConnectedServerId()})
	err := gather(ctx, nc, []question{q}, func(_ int, m *nats.Msg) bool {
		answered = !nobodyThere(m)
		return true
	})
	switch forbidden := Forbidden(nc); {
	case err != nil || answered:
		return err
	case forbidden != nil:
		return forbidden
	default:
		return messages.BrokerAway.Because("no server answers a kick")
	}
}
