package evict

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// Servers are asked who they are and whom they have, and told to drop connections:
// what the observer and the evictor answer.
type Servers interface {
	// Observe lists the servers, those of known included. An error means that nobody
	// could be asked.
	Observe(ctx context.Context, known []string) (messages.Roster, error)
	// Sweep lists connections. Where it has no doubts, whoever it does not list was not
	// connected, on any server of the roster, at some moment since it was called.
	Sweep(ctx context.Context, which messages.SweepConnections) (messages.Swept, error)
	// Kick has connections dropped, in one go, and returns a result for each.
	Kick(ctx context.Context, connections []messages.ConnectionRef) ([]messages.KickResult, error)
}

// Responders are asked whether what they had begun to decide is over: what presence
// answers.
type Responders interface {
	Settle(ctx context.Context, which messages.SettleResponders) (messages.Settled, error)
}

// Ports are whom an eviction asks.
type Ports struct {
	Servers Servers
	// Responders may be nil: then the time it takes a connect to expire is waited out.
	Responders Responders
	// Company may be nil: then nobody joins, as nobody does an eviction by Expires or anew.
	Company Company
}

// DefaultAuthTimeout is for servers that do not say how long a client may be
// connecting. It is longer than what they have by themselves, also with TLS.
const DefaultAuthTimeout = 5 * time.Second

// Ask says who is to go.
type Ask struct {
	// Targets are whom the eviction is about, one at least. Each names somebody.
	Targets []messages.Target
	// Account is where they are connected; empty is DATA.
	Account string
	// Known are the names of servers ever met. One that is not there leaves a doubt.
	Known []string
	// Frozen is when nothing new could be decided for the targets any more, on this
	// process's clock and better too late than too early: whoever resumes gives the
	// time at which it read that they are frozen. Zero is the time of the call.
	Frozen time.Time
	// Operation names who asks; one token.
	Operation string
	// Callouts are the public keys of the users that connects are answered by. Without
	// them nobody is asked to settle.
	Callouts []string
	// AuthTimeout is the longest that a client may be connecting, for servers that do
	// not say; 0 means DefaultAuthTimeout. Shorter than what servers have, and who was
	// admitted at the last moment is missed.
	AuthTimeout time.Duration
	// Expires is when the longest permission that any of the targets may have runs
	// out. It is given where the servers cannot be asked whom they have, and not
	// otherwise: then the eviction waits for it, and proves by it.
	Expires time.Time
}

// check refuses what names nobody. A sweep without targets would be after
// everybody, and a name that nobody can have is nobody's: it is a mistake.
func (a Ask) check() error {
	if len(a.Targets) == 0 {
		return messages.Malformed.Because("an eviction is about somebody")
	}
	for _, t := range a.Targets {
		if err := checkTarget(t); err != nil {
			return err
		}
	}
	return nil
}

func checkTarget(t messages.Target) error {
	if t == (messages.Target{}) {
		return messages.Malformed.Because("a target names nobody")
	}
	if !t.Principal.IsZero() {
		if err := names.CheckPrincipal(t.Principal); err != nil {
			return err
		}
	}
	if t.UID != "" {
		if err := names.CheckUID(t.UID); err != nil {
			return err
		}
	}
	if t.User != "" && !nkeys.IsValidPublicUserKey(t.User) {
		return messages.Malformed.Because("a target's user is not a user's public key")
	}
	return nil
}

func (a Ask) withDefaults(now time.Time) Ask {
	a.Account = cmp.Or(a.Account, string(trust.DATA))
	a.AuthTimeout = cmp.Or(a.AuthTimeout, DefaultAuthTimeout)
	if a.Frozen.IsZero() || a.Frozen.After(now) {
		a.Frozen = now
	}
	return a
}

// Progress says how far an eviction is.
type Progress struct {
	// Doing says what is being done now.
	Doing string
	// Done of Total are connections dropped of those met or, while it waits, whole
	// seconds; Total is 0 where it is not known.
	Done, Total int
	// WaitingFor says who keeps it, and Next which command leads on; empty when nobody
	// does, or none.
	WaitingFor, Next string
}

// Outcome is what one try found out; the caller adds up over several. Met, Evicted and
// Learnt are good also when Run fails.
type Outcome struct {
	// Met counts the connections that were listed, at one time or another.
	Met int
	// Evicted counts the connections that were dropped.
	Evicted int
	// Vacuous says that nobody was connected from the start, as every sweep tells.
	Vacuous bool
	// Servers are the names of those that listed everything without a trace, sorted.
	Servers []string
	// Eviction says how it was proved.
	Eviction messages.Eviction
	// Learnt are the names of servers that are not among the known, sorted. They are to
	// be known from now on.
	Learnt []string

	// For Of: the connections met, those dropped of them, and whether some sweep did not
	// see everything.
	seen    []messages.LiveConnection
	dropped map[messages.ConnectionRef]bool
	blind   bool
}
