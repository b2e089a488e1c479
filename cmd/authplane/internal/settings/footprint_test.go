package settings

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const yardFile = `space: acme
nats_url: nats://127.0.0.1:4222
state_dir: state
secrets_dir: secrets
footprint:
  consumers:
    - stream: DM
      name: dm-{uid}
      filters: ["dm.{owner}.{actor}.>"]
      ack: explicit
      ack_wait: 30s
      max_deliver: 5
      max_ack_pending: 10
      deliver: new
  rows:
    - bucket: acl_{space}
      key: "{owner}.{actor}.{uid}"
      value: '{"read":[]}'
`

func TestTheFootprintIsRead(t *testing.T) {
	got, err := parse("authplane.yaml", t.TempDir(), []byte(yardFile), Overrides{})
	want := messages.Footprint{
		Consumers: []messages.FootprintConsumer{{Stream: "DM", Name: "dm-{uid}", Filters: []string{"dm.{owner}.{actor}.>"}, Ack: "explicit",
			AckWait: 30 * time.Second, MaxDeliver: 5, MaxAckPending: 10, Deliver: "new"}},
		Rows: []messages.FootprintRow{{Bucket: "acl_{space}", Key: "{owner}.{actor}.{uid}", Value: `{"read":[]}`}},
	}
	if err != nil || !reflect.DeepEqual(got.Spaces[0].Footprint, want) {
		t.Errorf("read %+v, %v", got.Spaces, err)
	}
}

// Whatever is wrong with it is said with its line, before anything is started.
func TestAFootprintThatCannotBe(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"      deliver: new", "      deliver_subject: x", "line 14: footprint.consumers[0].deliver_subject: is not a setting"},
		{"      ack_wait: 30s", "      ack_wait: soon", `line 11: footprint.consumers[0].ack_wait: "soon" is no duration`},
		{"      name: dm-{uid}", "      name: dm-{actor}", "line 8: footprint.consumers[0].name:"},
		{"      name: dm-{uid}", "      name: dm-{id}-{uid}", "line 8: footprint.consumers[0].name: {id} stands for nothing"},
		{"      max_deliver: 5", "      max_deliver: five", "line 12: footprint.consumers[0].max_deliver: must be a whole number"},
		{"    - bucket: acl_{space}", "    - bucket: acl.{space}", "line 16: footprint.rows[0].bucket:"},
	} {
		text := strings.Replace(yardFile, c.from, c.to, 1)
		if text == yardFile {
			t.Fatalf("%s is not there", c.from)
		}
		if _, err := parse("authplane.yaml", t.TempDir(), []byte(text), Overrides{}); !errors.Is(err, messages.Malformed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}
