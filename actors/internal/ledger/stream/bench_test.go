package stream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

func principal(actor string) messages.Principal {
	return messages.Principal{Owner: "u_7ddcihobiesn4x46pu2mxn2qee", Actor: actor}
}

// bench is a ledger on one replica, with n principals granted.
func bench(b *testing.B, n int) (*ledger.Writer, *ledger.Reader, []messages.GrantWritten) {
	b.Helper()
	conn := dial(b, startServer(b).ClientURL())
	cfg := config("s", 1)
	met := open(b, conn, cfg)
	store := ledger.NewStore(stream.New(conn, cfg, stream.NewLanes(stream.MaxLanes)), ledger.DefaultPatience())
	writer := ledger.NewWriter(store, ledger.Options{Instance: names.NewUID()})
	reader := stream.NewLeaderReader(conn, stream.ReaderConfig{Config: cfg, Remembered: met})
	run(b, reader)
	usable(b, reader)
	made := make([]messages.GrantWritten, n)
	for i := range made {
		var err error
		made[i], err = writer.PutGrant(b.Context(), messages.PutGrant{Principal: principal(fmt.Sprintf("p%d", i)), Kind: messages.Interactive,
			By: "bench", Allowance: messages.Allowance{Publish: []string{"a.>", "b.*.c"}, Subscribe: []string{"d.>"}}})
		if err != nil {
			b.Fatal(err)
		}
	}
	return writer, ledger.NewReader(reader, nil), made
}

// BenchmarkAuthority is what a connect reads: head and grant, 64 at once.
func BenchmarkAuthority(b *testing.B) {
	writer, reader, made := bench(b, 256)
	for _, m := range made {
		if _, err := writer.Enrol(b.Context(), messages.Enrol{Principal: m.Principal, UID: m.UID}); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p := made[int(next.Add(1))%len(made)].Principal
			if _, err := reader.Authority(context.Background(), messages.ReadAuthority{Principal: p, Head: true}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}

// BenchmarkSameAuthority is the same for one principal, whose reads are shared.
func BenchmarkSameAuthority(b *testing.B) {
	_, reader, made := bench(b, 1)
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := reader.Authority(context.Background(), messages.ReadAuthority{Principal: made[0].Principal, Head: true}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}

// BenchmarkEnrol is the first exchange of as many principals as there are, 64 at once.
func BenchmarkEnrol(b *testing.B) {
	writer, _, made := bench(b, b.N)
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m := made[next.Add(1)-1]
			if _, err := writer.Enrol(context.Background(), messages.Enrol{Principal: m.Principal, UID: m.UID}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
}
