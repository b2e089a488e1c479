package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// admitted counts the connects that the process has let in.
func (q *process) admitted() (float64, error) {
	return q.counter("authplane_connects_total", `kind="admitted"`)
}

// serves waits until the process lets somebody in.
func (q *process) serves(who *person) {
	q.Helper()
	var before float64
	q.eventually(q.name+" counts", func() (err error) {
		before, err = q.admitted()
		return err
	})
	i := 0
	q.eventually(q.name+" answers a connect", func() error {
		i++
		if err := who.try(q.all[i%size]); err != nil {
			return err
		}
		now, err := q.admitted()
		if err == nil && now == before {
			err = fmt.Errorf("still %v", now)
		}
		return err
	})
}

// TestEverybodyAnswers has three processes answer connects while one of them holds the
// plane and the others say that they wait.
func TestEverybodyAnswers(t *testing.T) {
	p := begin(t)
	holder := p.serve(p.all[:])
	holder.holds()
	others := []*process{p.serve(p.all[:]), p.serve(p.all[:], "--standby")}
	for _, q := range others {
		s := q.waits(holder)
		if !strings.Contains(s.WaitingFor, messages.ClaimLivePeer.Message) {
			t.Errorf("%s waits for %q", q.name, s.WaitingFor)
		}
		var tree struct{ Actors []messages.Actor }
		if _, err := q.call(http.MethodGet, "/v1/tree", nil, &tree, http.StatusOK); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, a := range tree.Actors {
			found = found || a.Path == "plane/claim" && a.State == "open"
			if a.State != "open" {
				t.Errorf("%s: %s is %s", q.name, a.Path, a.State)
			}
		}
		if !found {
			t.Errorf("%s has no claim that is open: %+v", q.name, tree.Actors)
		}
	}
	who := holder.person("somebody")
	for _, q := range append(others, holder) {
		q.serves(who)
	}
	if s, err := holder.plane(); err != nil || !s.HeldByUs {
		t.Errorf("the holder says %+v, %v", s, err)
	}
	for _, q := range append(others, holder) {
		q.close()
	}
}

// TestAResponderIsPaused stops one of two processes under a load of connects: every
// connect that begins in time is let in again at its first try.
func TestAResponderIsPaused(t *testing.T) {
	p := begin(t)
	stays := p.serve(p.all[:])
	stays.holds()
	stops := p.serve(p.all[:])
	stops.waits(stays)
	who := stays.person("somebody")
	who.comes(p.all[:]...)
	load := who.load(p.all[:]...)
	p.eventually("both answer", func() error {
		for _, q := range []*process{stays, stops} {
			if n, err := q.admitted(); err != nil || n == 0 {
				return fmt.Errorf("%s: %v, %v", q.name, n, err)
			}
		}
		return nil
	})

	stays.knows(stops)

	stopped := time.Now()
	stops.signal(syscall.SIGSTOP)
	p.eventually("connects go on", func() error {
		if all, _ := between(load.so(), stopped.Add(servedAgain), time.Now()); all < 100 {
			return fmt.Errorf("%d so far", all)
		}
		return nil
	})
	tried := load.end()
	var last time.Time // of those that failed
	failed := 0
	for _, a := range tried {
		if a.err == nil || a.began.Before(stopped) && a.ended.Before(stopped) {
			continue
		}
		failed++
		if a.began.After(last) {
			last = a.began
		}
		if a.began.After(stopped.Add(servedAgain)) {
			t.Errorf("a connect to %s that began %v after the stop: %v", a.to, a.began.Sub(stopped), a.err)
		}
	}
	if failed == 0 {
		t.Error("nobody noticed the stop")
	}
	t.Logf("%d connects failed, the last began %v after the stop", failed, last.Sub(stopped))

	stops.signal(syscall.SIGCONT)
	stops.serves(who)
	stops.waits(stays)
	stops.close()
	stays.close()
}

// TestNoStandby starts a process that may not stand by beside a holder: it is refused
// before it answers anything, and the holder does not notice.
func TestNoStandby(t *testing.T) {
	p := begin(t)
	holder := p.serve(p.all[:], "--no-standby")
	held := holder.holds()
	nc, sys := p.owner(p.all[:]...), p.system(p.all[:]...)
	before, revision := p.claimed(nc)
	watched := p.watch(nc)
	answering := p.connects(sys, "auth")

	began := time.Now()
	second := p.launch(p.all[:], "--no-standby")
	code, rest := second.end()
	took := time.Since(began)
	if code != messages.ExitRefused || len(rest) > 0 {
		t.Errorf("exit %d, lines %q", code, rest)
	}
	said := second.said()
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, messages.ClaimLivePeer.Reason) || !strings.Contains(last, "leave out --no-standby") {
		t.Errorf("last it said %s", last)
	}
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if came := answering(); len(came) > 0 {
		t.Errorf("it had these connections where connects are answered: %q", came)
	}
	if written := watched.of(began); len(written) > 0 {
		t.Errorf("written meanwhile: %+v", written)
	}
	if stands, at := p.claimed(nc); stands != before || at != revision {
		t.Errorf("over %+v stands %+v", before, stands)
	}
	if s, err := holder.plane(); err != nil || s != held {
		t.Errorf("the holder says %+v, %v, and said %+v", s, err, held)
	}
	for _, c := range []tuple{before.Ledger, before.Records} {
		if listed, err := connected(sys, c); err != nil || !listed {
			t.Errorf("%+v: listed %v, %v", c, listed, err)
		}
	}
	t.Logf("refused after %v", took)
	holder.close()
}
