package settings

import (
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// footprintFile is what every machine gets besides its grant. In names, filters and
// values {owner}, {actor}, {uid} and {space} stand for those of the machine.
type footprintFile struct {
	Consumers []consumerFile `yaml:"consumers"`
	Rows      []rowFile      `yaml:"rows"`
}

type consumerFile struct {
	Stream  string   `yaml:"stream"`
	Name    string   `yaml:"name"`
	Filters []string `yaml:"filters"`
	Ack     string   `yaml:"ack"`
	// AckWait is a duration such as 30s.
	AckWait       string `yaml:"ack_wait"`
	MaxDeliver    int    `yaml:"max_deliver"`
	MaxAckPending int    `yaml:"max_ack_pending"`
	Deliver       string `yaml:"deliver"`
}

type rowFile struct {
	Bucket string `yaml:"bucket"`
	Key    string `yaml:"key"`
	Value  string `yaml:"value"`
}

func (f footprintFile) config() (messages.Footprint, []problem) {
	var out messages.Footprint
	var found []problem
	for i, c := range f.Consumers {
		var wait time.Duration
		if c.AckWait != "" {
			var err error
			if wait, err = time.ParseDuration(c.AckWait); err != nil {
				found = append(found, problem{key: fmt.Sprintf("footprint.consumers[%d].ack_wait", i), text: fmt.Sprintf("%.40q is no duration such as 30s", c.AckWait)})
			}
		}
		out.Consumers = append(out.Consumers, messages.FootprintConsumer{Stream: c.Stream, Name: c.Name, Filters: c.Filters, Ack: c.Ack,
			AckWait: wait, MaxDeliver: c.MaxDeliver, MaxAckPending: c.MaxAckPending, Deliver: c.Deliver})
	}
	for _, r := range f.Rows {
		out.Rows = append(out.Rows, messages.FootprintRow(r))
	}
	return out, found
}
