package messages

import "time"

// ListPeers asks the presence actor which processes of the space it hears.
// Answered by Peers.
type ListPeers struct{}

// Peers answers ListPeers, in the order of their instances.
type Peers struct{ Items []Peer }

// Peer is one process of the space, this one included.
type Peer struct {
	Instance string    `json:"instance"`
	Self     bool      `json:"self"`
	Heard    time.Time `json:"heard"`
	// Connections are what others kick when it falls silent.
	Connections []ConnectionRef `json:"connections"`
	// Kicked is when this process last had them dropped; zero if it never had.
	Kicked time.Time `json:"kicked"`
}

// SettleDecisions asks one responder for Settled: once every decision that had begun
// when it was asked is answered and the servers have the answers. Refused with
// BrokerAway when that cannot be known.
type SettleDecisions struct{}

// Settled names connections over which no answer comes any more to a connect that was
// decided before the question.
type Settled struct{ Connections []ConnectionRef }

// SettleResponders asks presence to have every process of the space settle. Answered
// by Settled as soon as it names every connection awaited, and in any case after 2 s
// with what is settled by then.
type SettleResponders struct {
	// Operation names who asks; one token.
	Operation string
	// Await are the responders' connections as the servers list them, read after
	// whatever the decisions shall have seen was changed.
	Await []ConnectionRef
}
