// Package supervisor keeps a tree of actors alive on top of protoactor-go.
package supervisor
