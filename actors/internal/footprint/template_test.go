package footprint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/messages"
)

func TestTemplates(t *testing.T) {
	fine := func() messages.Footprint {
		return messages.Footprint{
			Consumers: []messages.FootprintConsumer{{Stream: "DM", Name: "dm-{uid}", Filters: []string{"dm.{owner}.{actor}.>", "all"}, AckWait: time.Second, MaxDeliver: 3}},
			Rows:      []messages.FootprintRow{{Bucket: "acl-{space}", Key: "{owner}.{actor}.{uid}", Value: `{"a":{},"b":"{uid}"}`}},
		}
	}
	if found := footprint.Check(fine()); len(found) != 0 {
		t.Errorf("found %v", found)
	}
	if found := footprint.Check(messages.Footprint{}); len(found) != 0 {
		t.Errorf("found %v in nothing", found)
	}
	for key, change := range map[string]func(*messages.Footprint){
		"consumers[0].stream":          func(f *messages.Footprint) { f.Consumers[0].Stream = "" },
		"consumers[0].stream ":         func(f *messages.Footprint) { f.Consumers[0].Stream = "DM-{uid}" },
		"consumers[0].stream  ":        func(f *messages.Footprint) { f.Consumers[0].Stream = "a.b" },
		"consumers[0].name":            func(f *messages.Footprint) { f.Consumers[0].Name = "dm-{actor}" },
		"consumers[0].name ":           func(f *messages.Footprint) { f.Consumers[0].Name = "dm.{uid}" },
		"consumers[0].name  ":          func(f *messages.Footprint) { f.Consumers[0].Name = "dm-{UID}" },
		"consumers[0].name   ":         func(f *messages.Footprint) { f.Consumers[0].Name = strings.Repeat("a", 190) + "{uid}" },
		"consumers[0].filters[0]":      func(f *messages.Footprint) { f.Consumers[0].Filters[0] = "a..b" },
		"consumers[0].filters[1]":      func(f *messages.Footprint) { f.Consumers[0].Filters[1] = "dm.>" },
		"consumers[0].filters[0] ":     func(f *messages.Footprint) { f.Consumers[0].Filters[0] = "a {uid}" },
		"consumers[0].ack":             func(f *messages.Footprint) { f.Consumers[0].Ack = "never" },
		"consumers[0].ack ":            func(f *messages.Footprint) { f.Consumers[0].Ack = "none" },
		"consumers[0].deliver":         func(f *messages.Footprint) { f.Consumers[0].Deliver = "first" },
		"consumers[0].ack_wait":        func(f *messages.Footprint) { f.Consumers[0].AckWait = time.Nanosecond },
		"consumers[0].max_deliver":     func(f *messages.Footprint) { f.Consumers[0].MaxDeliver = -1 },
		"consumers[0].max_ack_pending": func(f *messages.Footprint) { f.Consumers[0].MaxAckPending = footprint.MaxCount + 1 },
		"consumers[1]":                 func(f *messages.Footprint) { f.Consumers = append(f.Consumers, f.Consumers[0]) },
		"consumers":                    func(f *messages.Footprint) { f.Consumers = make([]messages.FootprintConsumer, 33) },
		"rows[0].bucket":               func(f *messages.Footprint) { f.Rows[0].Bucket = "acl.{space}" },
		"rows[0].key":                  func(f *messages.Footprint) { f.Rows[0].Key = "{owner}" },
		"rows[0].key ":                 func(f *messages.Footprint) { f.Rows[0].Key = "a..{uid}" },
		"rows[0].key  ":                func(f *messages.Footprint) { f.Rows[0].Key = "*.{uid}" },
		"rows[0].value":                func(f *messages.Footprint) { f.Rows[0].Value = "{role}" },
		"rows[0].value ":               func(f *messages.Footprint) { f.Rows[0].Value = strings.Repeat("a", 4097) },
		"rows[1]":                      func(f *messages.Footprint) { f.Rows = append(f.Rows, f.Rows[0]) },
		"consumers[0].name    ":        func(f *messages.Footprint) { f.Consumers[0].Name = "dm-é-{uid}" },
		"consumers[0].filters[0]  ":    func(f *messages.Footprint) { f.Consumers[0].Filters[0] = "dm.{{actor}}" },
		"rows[0].key   ":               func(f *messages.Footprint) { f.Rows[0].Key = ">.{uid}" },
		"rows[0].key    ":              func(f *messages.Footprint) { f.Rows[0].Key = "ключ.{uid}" },
		"rows[0].value  ":              func(f *messages.Footprint) { f.Rows[0].Value = "\xff" },
		"rows":                         func(f *messages.Footprint) { f.Rows = make([]messages.FootprintRow, 1000) },
		"rows[31]":                     func(f *messages.Footprint) { f.Rows = alike(32, "{uid}", "v") },
		"consumers and rows":           func(f *messages.Footprint) { *f = longest() },
		"consumers and rows ":          func(f *messages.Footprint) { f.Rows = named(32, "a", strings.Repeat(`"`, 4096)) },
		"consumers and rows  ":         func(f *messages.Footprint) { f.Rows = named(16, "a", strings.Repeat("\x01", 4096)) },
	} {
		f := fine()
		change(&f)
		found := footprint.Check(f)
		if len(found) == 0 || found[0].Key != strings.TrimSpace(key) {
			t.Errorf("%s: found %v", key, found)
		}
	}
}

// named are n rows of different keys, and alike rows of one.
func named(n int, name, value string) (rows []messages.FootprintRow) {
	for i := range n {
		rows = append(rows, messages.FootprintRow{Bucket: "b", Key: fmt.Sprintf("%s%d.{uid}", name, i), Value: value})
	}
	return rows
}

// longest has as many parts as may be, each with names as long as any.
func longest() (f messages.Footprint) {
	f.Rows = named(32, strings.Repeat("a", 160), "v")
	for i := range f.Rows {
		f.Rows[i].Bucket = strings.Repeat("b", 200)
		f.Consumers = append(f.Consumers, messages.FootprintConsumer{Stream: strings.Repeat("s", 200), Name: fmt.Sprintf("%s%d-{uid}", strings.Repeat("a", 160), i)})
	}
	return f
}

func alike(n int, key, value string) []messages.FootprintRow {
	rows := named(n, "a", value)
	rows[n-1].Key, rows[0].Key = key, key
	return rows
}

// Whatever passes the check and is written out holds nothing that stands for something,
// and names nobody but its own incarnation.
func FuzzTemplates(f *testing.F) {
	f.Add("dm-{uid}", "dm.{owner}.>", "{owner}.{uid}", `{"a":"{actor}"}`)
	f.Add("{uid}{uid}", ">", "{uid}", "{}")
	f.Add("{{uid}}", "{space}", "{uid}.{", "{a}")
	f.Fuzz(func(t *testing.T, name, filter, key, value string) {
		template := messages.Footprint{
			Consumers: []messages.FootprintConsumer{{Stream: "S", Name: name, Filters: []string{filter}}},
			Rows:      []messages.FootprintRow{{Bucket: "b", Key: key, Value: value}},
		}
		if len(footprint.Check(template)) > 0 {
			return
		}
		const uid = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
		written := footprint.Render(template, "main", principal("bot"), uid)
		c, r := written.Consumers[0], written.Rows[0]
		for _, text := range []string{c.Name, r.Key} {
			if !strings.Contains(text, uid) || strings.ContainsAny(text, "{}*> \t\r\n") {
				t.Errorf("written out: %q", text)
			}
		}
		if strings.ContainsAny(c.Filters[0], " \t\r\n") || strings.ContainsAny(c.Name, ".") {
			t.Errorf("written out: %q %q", c.Name, c.Filters)
		}
		if other := footprint.Render(template, "main", principal("bot"), strings.Repeat("b", 26)); other.Consumers[0].Name == c.Name || other.Rows[0].Key == r.Key {
			t.Errorf("two incarnations share %q or %q", c.Name, r.Key)
		}
	})
}
