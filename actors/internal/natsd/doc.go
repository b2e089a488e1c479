// Package natsd runs a nats-server inside this process, on the configuration that
// a trust chain came with: one server for development, or a cluster for tests.
//
// A server here never exits the process, installs no signal handler and writes
// nothing to standard output; what it has to say goes to a slog.Logger or nowhere.
// Stop waits until it is gone. Production runs the nats-server of its own choice
// as its own process instead.
//
// What may come in: starting and stopping servers. What may not: connecting to
// them (that is the broker room's), and anything about what they carry.
package natsd
