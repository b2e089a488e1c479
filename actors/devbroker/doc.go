// Package devbroker keeps an embedded nats-server alive for development: the
// broker of `authplane dev` and `demo`, on the trust chain of its directory.
//
// Its actor is a leaf like any other. However it dies, the same server stands
// again at the same address, with the streams it had, so that clients and the
// service come back by themselves. Nothing but the dev command and tests may start
// it; production runs a nats-server of its own.
//
// Files: server.go (what is permanent, and one time it runs), actor.go (the leaf).
package devbroker
