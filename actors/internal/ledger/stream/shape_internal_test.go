package stream

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// TestShapeIsAnAllowList is about servers to come: a field nobody knows yet must
// be off, and a field we rely on must be there.
func TestShapeIsAnAllowList(t *testing.T) {
	cfg := Config{Space: "s", Replicas: 1}
	shown := func() map[string]json.RawMessage {
		config := map[string]json.RawMessage{}
		for field, value := range cfg.knownGood() {
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			config[field] = raw
		}
		return config
	}
	if err := cfg.checkShape(shown()); err != nil {
		t.Fatalf("as known good: %v", err)
	}
	for _, off := range []string{`null`, `false`, `0`, `""`, `[]`, `{}`, ` { } `} {
		config := shown()
		config["new_in_some_version"] = json.RawMessage(off)
		if err := cfg.checkShape(config); err != nil {
			t.Errorf("a new field at %s: %v", off, err)
		}
	}
	for _, on := range []string{`true`, `1`, `-1`, `0.5`, `"x"`, `[0]`, `{"a":0}`, `garbage`} {
		config := shown()
		config["new_in_some_version"] = json.RawMessage(on)
		if err := cfg.checkShape(config); !errors.Is(err, messages.StreamDrifted) {
			t.Errorf("a new field at %s: %v", on, err)
		}
	}
	for field := range cfg.knownGood() {
		config := shown()
		delete(config, field)
		if err := cfg.checkShape(config); !errors.Is(err, messages.StreamDrifted) {
			t.Errorf("without %s: %v", field, err)
		}
	}
}
