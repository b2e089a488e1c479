package supervisor

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

type Life struct{}

func (l *Life) Path() string                                               { panic("todo") }
func (l *Life) Generation() uint64                                         { panic("todo") }
func (l *Life) Self() Ref                                                  { panic("todo") }
func (l *Life) Ref(path string) Ref                                        { panic("todo") }
func (l *Life) Tree() *Tree                                                { panic("todo") }
func (l *Life) Opened()                                                    { panic("todo") }
func (l *Life) Drained(err error)                                          { panic("todo") }
func (l *Life) ClosedWith(err error)                                       { panic("todo") }
func (l *Life) Fail(err error)                                             { panic("todo") }
func (l *Life) Fence(reason error)                                         { panic("todo") }
func (l *Life) Go(name string, task func(ctx context.Context))             { panic("todo") }
func (l *Life) Context() context.Context                                   { panic("todo") }
func (l *Life) Tell(msg any)                                               { panic("todo") }
func (l *Life) Hold(r Resource) error                                      { panic("todo") }
func (l *Life) Reply(to *actor.PID, answer any)                            { panic("todo") }
func (l *Life) Log() *slog.Logger                                          { panic("todo") }
func (l *Life) Add(ctx context.Context, group string, s Spec) (Ref, error) { panic("todo") }
func (l *Life) Remove(ctx context.Context, path string) error              { panic("todo") }

type Ref struct {
	tree *Tree
	path string
}

func (r Ref) Path() string    { return r.path }
func (r Ref) PID() *actor.PID { panic("todo") }

func Ask[T any](ctx context.Context, to Ref, msg any) (T, error) { panic("todo") }
func Tell(to Ref, msg any) error                                 { panic("todo") }

type Tree struct{ set settings }

func Start(ctx context.Context, system *actor.ActorSystem, root Spec, opts ...Option) (*Tree, error) {
	panic("todo")
}
func (t *Tree) Ref(path string) (Ref, bool)                                { panic("todo") }
func (t *Tree) Add(ctx context.Context, group string, s Spec) (Ref, error) { panic("todo") }
func (t *Tree) Remove(ctx context.Context, path string) error              { panic("todo") }
func (t *Tree) Close(ctx context.Context) error                            { panic("todo") }
func (t *Tree) Closed() <-chan struct{}                                    { panic("todo") }
func (t *Tree) Failed() <-chan struct{}                                    { panic("todo") }
func (t *Tree) Err() error                                                 { panic("todo") }
func (t *Tree) Snapshot() []Node                                           { panic("todo") }
func (t *Tree) State() State                                               { panic("todo") }
func (t *Tree) Cause() error                                               { panic("todo") }
func (t *Tree) Events(buffer int) *Subscription                            { panic("todo") }
func (t *Tree) Kill(path string, how How) (Killed, error)                  { panic("todo") }
func (t *Tree) Custody() *Custody                                          { panic("todo") }
