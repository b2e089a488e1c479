package messages

import "time"

// ConnectionRef names one connection to a server. A server gives a client id once
// in a run, and a server id to no other run, so it names that connection for ever.
type ConnectionRef struct {
	// ServerID is the server's public key of its present run.
	ServerID string `json:"server"`
	// ClientID is never 0.
	ClientID uint64 `json:"cid"`
}

// Server is one server of the roster.
type Server struct {
	// Name outlives the server's runs.
	Name string `json:"name"`
	// ID is of its present run; empty while it does not answer.
	ID string `json:"id"`
	// Cluster is empty for a server that stands alone, and while it does not answer.
	Cluster string `json:"cluster"`
	// Answered says that it said who it is, and what its time limits are.
	Answered bool `json:"answered"`
	// AuthTimeout is the longest a client may be connecting before the server drops
	// it; 0 while it does not answer.
	AuthTimeout time.Duration `json:"auth_timeout"`
}

// ObserveServers asks the observer who the servers are. Answered by Roster.
type ObserveServers struct {
	// Known are the names of servers met before, whether they run or not.
	Known []string
}

// Roster is every server there is, as far as can be told: those that answered,
// those that the JetStream leader counts as its peers, and those known before.
type Roster struct {
	// Servers are in the order of their names.
	Servers []Server `json:"servers"`
	// Doubts say why a sweep by this roster proves nothing; empty when it would.
	Doubts []string `json:"doubts"`
}

// Target says whose connections a sweep is after. A connection belongs to it
// when it bears the principal's name and no uid but this one, or this uid, or this
// user. Empty fields match nothing; a target without a UID is the principal in all
// its lives.
type Target struct {
	Principal Principal
	UID       string
	// User is a user's public nkey, case kept.
	User string
}

// SweepConnections asks the observer for the connections of one account on every
// server. Answered by Swept, however many servers are missing.
type SweepConnections struct {
	// Account is DATA, CTRL or AUTH.
	Account string
	// Known are the names of servers met before.
	Known []string
	// Targets are whom the sweep is after; none means every connection.
	Targets []Target
}

// Swept answers SweepConnections.
type Swept struct {
	// Servers are those of the roster, and whoever else answered, by name.
	Servers []SweptServer `json:"servers"`
	// Connections are those of the targets, whoever is missing.
	Connections []LiveConnection `json:"connections"`
	// Doubts say why absence from Connections proves nothing. Only when there are
	// none is somebody who is not listed gone.
	Doubts []string `json:"doubts"`
}

// SweptServer says how one server took part in a sweep.
type SweptServer struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	// Whole says that it listed every connection it has of the account.
	Whole bool `json:"whole"`
}

// LiveConnection is one connection as its server lists it.
type LiveConnection struct {
	ConnectionRef
	ServerName string `json:"server_name"`
	// User is `<owner>-<actor>` for a principal, a public nkey for users with a JWT
	// of their own; case kept.
	User string `json:"user"`
	// UID is the incarnation; empty for whoever has none.
	UID string `json:"uid"`
	// Label is the name the client gave itself: never evidence.
	Label string `json:"label"`
}

// ConnectionTuple is one connection of ours as it is pinned in a row, so that
// anybody with the servers' ear can tell whether it still lives.
type ConnectionTuple struct {
	// ServerName outlives a restart of the server; ServerID does not.
	ServerName string
	ServerID   string
	// ClientID is the server's number for the connection, from 1.
	ClientID uint64
	// User is the public nkey of the connection's user; it is made for this one
	// connection and never used again.
	User string
}

// Verdict says what is known of a connection.
type Verdict string

const (
	// Live is a connection that a server lists.
	Live Verdict = "live"
	// Gone is a connection that can never act again.
	Gone Verdict = "gone"
	// Unknown is everything else; it is never taken for Gone.
	Unknown Verdict = "unknown"
)

// AskLiveness asks the observer whether a connection of CTRL is gone. Answered by
// Liveness.
type AskLiveness struct {
	Connection ConnectionTuple
	// Lost are the names of servers that the operator gave up for good.
	Lost []string
}

// Liveness answers AskLiveness.
type Liveness struct {
	Verdict Verdict
	// Note tells the operator why, and what to do about an unknown.
	Note string
}

// KickConnections asks the evictor to have servers drop connections. Answered by
// Kicked.
type KickConnections struct{ Connections []ConnectionRef }

// Kicked answers KickConnections, in the order of the question.
type Kicked struct{ Results []KickResult }

// KickResult is what became of one connection.
type KickResult struct {
	ConnectionRef
	Outcome KickOutcome
	// Note is what the server said, for KickRefused.
	Note string
}

// KickOutcome says what a server answered.
type KickOutcome string

const (
	// KickDone is a connection the server has dropped.
	KickDone KickOutcome = "kicked"
	// KickAbsent is a connection the server does not have.
	KickAbsent KickOutcome = "absent"
	// KickNoServer means that no server with this id runs.
	KickNoServer KickOutcome = "no-server"
	// KickSilent means that nobody answered in time.
	KickSilent KickOutcome = "silent"
	// KickRefused is any other answer.
	KickRefused KickOutcome = "refused"
)
