package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
)

// metadataInstall holds the installation's id in the stream's metadata; the server
// adds fields of its own under metadataServer.
const (
	metadataInstall = "installId"
	metadataServer  = "_nats."
)

// duplicateWindow is the server's own; no write of ours carries a message id.
const duplicateWindow = 2 * time.Minute

// shape is the stream as we create it.
func (c Config) shape(installID string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               c.Name(),
		Subjects:           []string{c.Subject(">")},
		Retention:          jetstream.LimitsPolicy,
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		MaxMsgsPerSubject:  1,
		MaxMsgs:            -1,
		MaxBytes:           -1,
		MaxMsgSize:         -1,
		MaxConsumers:       -1,
		Duplicates:         duplicateWindow,
		Replicas:           c.Replicas,
		DenyDelete:         true,
		DenyPurge:          true,
		AllowAtomicPublish: true,
		RePublish:          &jetstream.RePublish{Source: c.Subject(">"), Destination: c.Changed(">"), HeadersOnly: true},
		Metadata:           map[string]string{metadataInstall: installID},
	}
}

// knownGood is each field of the configuration as the server must show it.
func (c Config) knownGood() map[string]any {
	return map[string]any{
		"name":                 c.Name(),
		"subjects":             []string{c.Subject(">")},
		"retention":            "limits",
		"storage":              "file",
		"discard":              "new",
		"compression":          "none",
		"max_msgs_per_subject": 1,
		"max_msgs":             -1,
		"max_bytes":            -1,
		"max_msg_size":         -1,
		"max_consumers":        -1,
		"duplicate_window":     duplicateWindow.Nanoseconds(),
		"num_replicas":         c.Replicas,
		"deny_delete":          true,
		"deny_purge":           true,
		"allow_atomic":         true,
		"republish":            map[string]any{"src": c.Subject(">"), "dest": c.Changed(">"), "headers_only": true},
	}
}

// checkShape refuses a configuration with any field that is not as known good. A
// field we do not know must hold its zero: what it may do one day, it does not do.
func (c Config) checkShape(config map[string]json.RawMessage) error {
	want := c.knownGood()
	var drifted []string
	for _, field := range slices.Sorted(maps.Keys(config)) {
		good, known := want[field]
		delete(want, field)
		switch {
		case field == "metadata": // open.go reads it
		case known && !sameJSON(config[field], good), !known && !zeroJSON(config[field]):
			drifted = append(drifted, field)
		}
	}
	drifted = append(drifted, slices.Sorted(maps.Keys(want))...)
	if len(drifted) > 0 {
		return messages.StreamDrifted.Because("%s: %s", c.Name(), strings.Join(drifted, ", "))
	}
	return nil
}

// sameJSON compares by meaning: order and spacing of the server's do not matter.
func sameJSON(got json.RawMessage, want any) bool {
	normal, err := json.Marshal(want)
	if err != nil {
		return false
	}
	return normalized(got) == normalized(normal)
}

func zeroJSON(raw json.RawMessage) bool {
	switch normalized(raw) {
	case "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}

func normalized(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return fmt.Sprintf("unreadable: %v", err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("unreadable: %v", err)
	}
	return string(text)
}
