// Package bench measures whole spaces on a real nats-server and prints, for each
// figure that authplane promises, one readable block: first the ratio it is judged
// by, then the absolute numbers, which are those of this machine.
//
//	go test -run '^$' -bench . -benchtime 1x ./test/bench
//
// takes some minutes; name one with -bench Connects. The two sides of a ratio are
// measured in one run and in turns (A B A B …), and given as medians with the
// smallest and the largest turn: a ratio survives a busy machine better than a
// rate does. Everything shares the cores: the service in this process, the broker
// and the crowds of clients in processes of their own.
//
// What is written goes to a directory below TMPDIR; how fast its disk makes things
// durable decides the rate of first exchanges, and is shown beside it.
//
// Where the time goes: -cpuprofile cpu.out -o bench.test profiles this process,
// which is the service, with -bench Connects or Storm; then go tool pprof bench.test
// cpu.out. The profile of the broker is written where BENCH_BROKER_PROFILE names a
// file.
//
// Under plain go test only a smoke test of all this runs.
package bench
