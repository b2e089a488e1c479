package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const codeNoConsumer = 10014

// scanIdle is how long the server keeps a consumer that nobody pulls from: that of
// a scanner which died.
const scanIdle = 30 * time.Second

// consumer is one consumer under a literal name.
type consumer struct {
	client
	name string
	// filters are the subjects it delivers, sorted.
	filters []string
}

// consumerInfo is what the server says of a consumer.
type consumerInfo struct {
	envelope
	Created   time.Time                  `json:"created"`
	Config    map[string]json.RawMessage `json:"config"`
	Delivered struct {
		Consumer uint64 `json:"consumer_seq"`
	} `json:"delivered"`
	Pending uint64 `json:"num_pending"`
}

// config is the consumer as it is asked for: pulled, nothing acknowledged, the last
// message of each subject, kept in memory and not for long.
func (c consumer) config() map[string]any {
	config := map[string]any{
		"name":               c.name,
		"deliver_policy":     "last_per_subject",
		"ack_policy":         "none",
		"replay_policy":      "instant",
		"mem_storage":        true,
		"inactive_threshold": scanIdle.Nanoseconds(),
	}
	if len(c.filters) == 1 {
		config["filter_subject"] = c.filters[0]
	} else {
		config["filter_subjects"] = c.filters
	}
	return config
}

// make creates it. One that stands under the name is refused unless it is alike.
func (c consumer) make(ctx context.Context) error {
	body := map[string]any{"stream_name": c.cfg.Name(), "config": c.config(), "action": "create"}
	var made consumerInfo
	if err := c.askConsumer(ctx, "CONSUMER.CREATE", body, &made); err != nil {
		return refusedScan("create", err)
	}
	return nil
}

// remove ends it, whoever made it. That there is none is fine.
func (c consumer) remove(ctx context.Context) error {
	var gone struct {
		envelope
		Success bool `json:"success"`
	}
	err := c.askConsumer(ctx, "CONSUMER.DELETE", nil, &gone)
	switch {
	case refusedWith(err, codeNoConsumer):
		return nil
	case err != nil:
		return refusedScan("remove", err)
	case !gone.Success:
		return messages.ScanRefused.Because("remove: the server did not say that it is gone")
	}
	return nil
}

// look reads how far it is.
func (c consumer) look(ctx context.Context) (consumerInfo, error) {
	var seen consumerInfo
	err := c.askConsumer(ctx, "CONSUMER.INFO", nil, &seen)
	if refusedWith(err, codeNoConsumer) {
		return seen, messages.ScanIncomplete.Because("the consumer is gone")
	}
	if err != nil {
		return seen, refusedScan("look at", err)
	}
	return seen, nil
}

// verify refuses a consumer that is in any field not as it was asked for. A field
// that we did not set must hold what the server gives every consumer.
func (c consumer) verify(seen consumerInfo) error {
	want := c.config()
	given := map[string]any{"max_deliver": -1, "max_waiting": 512, "num_replicas": 0}
	var drifted []string
	for _, field := range slices.Sorted(maps.Keys(seen.Config)) {
		value := seen.Config[field]
		good, asked := want[field]
		byServer, known := given[field]
		delete(want, field)
		switch {
		case field == "metadata":
			if !onlyServerMetadata(value) {
				drifted = append(drifted, field)
			}
		case asked && !sameJSON(value, good), !asked && !zeroJSON(value) && !(known && sameJSON(value, byServer)):
			drifted = append(drifted, field)
		}
	}
	drifted = append(drifted, slices.Sorted(maps.Keys(want))...)
	if len(drifted) > 0 {
		return messages.ScanRefused.Because("%s is not as it was made: %s", c.name, strings.Join(drifted, ", "))
	}
	return nil
}

// onlyServerMetadata reports whether nobody but the server wrote metadata.
func onlyServerMetadata(raw json.RawMessage) bool {
	var metadata map[string]string
	if err := json.Unmarshal(raw, &metadata); err != nil {
		return false
	}
	for key := range metadata {
		if !strings.HasPrefix(key, metadataServer) {
			return false
		}
	}
	return true
}

func (c consumer) askConsumer(ctx context.Context, verb string, body any, answer interface{ refusal() *apiError }) error {
	return c.askAbout(ctx, verb, c.cfg.Name()+"."+c.name, body, answer)
}

// refusedScan keeps an absent broker apart from a server that says no.
func refusedScan(what string, err error) error {
	var no *apiError
	if errors.As(err, &no) && !errors.Is(err, messages.BrokerAway) {
		return messages.ScanRefused.From(fmt.Errorf("%s the consumer: %w", what, err))
	}
	return fmt.Errorf("%s the consumer: %w", what, err)
}
