package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/messages"
)

// The largest footprint that may be configured is one that a server lets its connections
// in for, and that is made and removed.
func TestTheLargestFootprint(t *testing.T) {
	a := openAccount(t)
	stream, bucket := strings.Repeat("S", 200), strings.Repeat("b", 180)
	_, err := a.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: stream, Subjects: []string{"s.>"}})
	must(t, err)
	_, err = a.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket})
	must(t, err)
	var template messages.Footprint
	for n := range footprint.MaxParts {
		next := messages.Footprint{Consumers: slices.Clone(template.Consumers), Rows: slices.Clone(template.Rows)}
		next.Rows = append(next.Rows, messages.FootprintRow{Bucket: bucket, Key: fmt.Sprintf("%s%02d.{uid}", strings.Repeat("k", 160), n), Value: strings.Repeat("é", 2048)})
		next.Consumers = append(next.Consumers, messages.FootprintConsumer{Stream: stream, Name: fmt.Sprintf("%s%02d-{uid}", strings.Repeat("n", 160), n),
			Filters: []string{fmt.Sprintf("s.%02d.%s.>", n, strings.Repeat("a", 240))}})
		if len(footprint.Check(next)) != 0 {
			break
		}
		template = next
	}
	if n := len(template.Rows); n < footprint.MaxParts/2 || n == footprint.MaxParts {
		t.Fatalf("%d of each may be configured", n) // none of them is the largest
	}
	f := footprint.Render(template, "acme", messages.Principal{Owner: "u_" + strings.Repeat("a", 26), Actor: strings.Repeat("a", 64)}, life)
	a.makes(a.site(broker.Provisioner(f), life), f, nil)
	a.removes(a.site(broker.Deprovisioner(f), life), f, true)
}
