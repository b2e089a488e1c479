// Package world is the stage on which whole-service tests play: a real
// nats-server in operator mode, a development identity provider and an open space,
// and the people who connect through it. It uses only what an embedding program
// can: the packages outside actors/internal, HTTP and NATS.
package world
