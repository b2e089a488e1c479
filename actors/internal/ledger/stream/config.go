package stream

import (
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Config says which stream, and how a process speaks to it.
type Config struct {
	// Space names the tenant.
	Space string
	// Replicas is 1, 3 or 5. From 3 on a leader must be proved by a beat, since one
	// that is cut off answers stale.
	Replicas int
	// Instance names this process; its beat stands under it. One token of [a-z0-9].
	Instance string
	// Timeout bounds one request to the stream; 0 is DefaultTimeout. Too short and a
	// busy server is asked twice; too long and a lost answer holds a lane.
	Timeout time.Duration

	records bool // see Records
}

// DefaultTimeout is how long one answer is waited for.
const DefaultTimeout = 2 * time.Second

// Check refuses a configuration that names no stream.
func (c Config) Check() error {
	if err := names.CheckSpace(c.Space); err != nil {
		return err
	}
	if c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5 {
		return messages.Malformed.Because("a stream has 1, 3 or 5 replicas, not %d", c.Replicas)
	}
	return names.CheckUID(c.Instance)
}

// Name is the stream's.
func (c Config) Name() string { return "KV_" + c.bucket() }

// Subject is the one a row is stored under.
func (c Config) Subject(key string) string { return c.prefix() + key }

func (c Config) prefix() string { return "$KV." + c.bucket() + "." }
func (c Config) proved() bool   { return c.Replicas < 3 }

func (c Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}
