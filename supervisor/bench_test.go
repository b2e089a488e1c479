package supervisor_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	. "github.com/cotal-ai/authplane/supervisor"
)

func BenchmarkAsk(b *testing.B) {
	tree := start(b, group("root", plain("a", nil)))
	to := ref(b, tree, "a")
	ctx := within(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Ask[int](ctx, to, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAskOf64(b *testing.B) {
	tree := start(b, group("root", plain("a", nil)))
	to := ref(b, tree, "a")
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		for pb.Next() {
			if _, err := Ask[int](ctx, to, 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkAskDeferred(b *testing.B) {
	p := &probe{receive: func(l *Life, c actor.Context) { l.Reply(c.Sender(), c.Message()) }}
	tree := start(b, group("root", p.spec("a")))
	to := ref(b, tree, "a")
	ctx := within(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Ask[int](ctx, to, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func echo(c actor.Context) {
	if n, ok := c.Message().(int); ok {
		c.Respond(n)
	}
}

func BenchmarkLibraryRequestFuture(b *testing.B) {
	system := newSystem()
	pid := system.Root.Spawn(actor.PropsFromFunc(echo))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := system.Root.RequestFuture(pid, 1, time.Minute).Result(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLibraryRequestFutureOf64(b *testing.B) {
	system := newSystem()
	pid := system.Root.Spawn(actor.PropsFromFunc(echo))
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := system.Root.RequestFuture(pid, 1, time.Minute).Result(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
