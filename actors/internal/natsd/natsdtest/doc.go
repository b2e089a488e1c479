// Package natsdtest gives tests what they need of a broker: a trust chain, an
// embedded server or cluster, a nats-server in a process of its own, and raw
// connections with whatever permissions a test wants to try. Everything it starts
// ends with the test. Nothing but tests imports it.
package natsdtest
