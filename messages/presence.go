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
