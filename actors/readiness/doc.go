// Package readiness keeps one connection to ask the service that a platform has assigned
// how it is.
//
// It is a group with at most one actor in use. When another service is assigned, an actor
// for it is opened first; the former one ends once nobody reads through it any more. One
// that could not be opened is not remembered, so the next read tries anew.
package readiness
