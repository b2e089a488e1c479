package plane

import (
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/reader"
	"github.com/cotal-ai/authplane/actors/writer"
	"github.com/cotal-ai/authplane/supervisor"
)

// Paths of the plane's actors, for who asks them.
const (
	Path   = "plane"
	Writer = Path + "/writer"
	Reader = Path + "/reader"
)

// Config is what the plane's clients share.
type Config struct {
	Dialer       *broker.Dialer
	Stream       stream.Config
	Installation writer.Installation
}

// Spec describes the plane as a child of its space: what opens, in which order,
// and in which stages it closes. When it fails upward, so does the space.
func Spec(config Config) supervisor.Spec {
	return supervisor.Spec{Name: Path, Restart: supervisor.Escalate, Group: &supervisor.Group{
		Children: []supervisor.Spec{
			writer.Spec(writer.Config{
				Dialer: config.Dialer, Stream: config.Stream,
				Lanes: stream.NewLanes(stream.MaxLanes), Installation: config.Installation,
			}),
			reader.Spec(reader.Config{
				Dialer: config.Dialer, Stream: config.Stream,
				Remembered: config.Installation.Remembered,
			}),
		},
		Stages: []supervisor.Stage{
			{Name: "reader", Close: []string{"reader"}, Halts: true},
			{Name: "writer", Close: []string{"writer"}},
		},
	}}
}
