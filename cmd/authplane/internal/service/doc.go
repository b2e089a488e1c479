// Package service is how a command reaches a service that runs: the record a
// service leaves in its state directory, and a client of its loopback face.
//
// It knows the documented surface and nothing of what is behind it. Every refusal
// comes back as a *Refusal that carries the code and the reason of the catalogue.
package service
