package cluster

import (
	"errors"
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// Times that are promised.
const (
	// takenAfterLoss is how long after the servers saw the loss of a holder the plane
	// may be nobody's.
	takenAfterLoss = 2 * time.Second
	// takenAfterStop is the same for a holder that was stopped where it stands.
	takenAfterStop = 3 * time.Second
	// servedAgain is how long connects may fail after a responder is gone.
	servedAgain = 2 * time.Second
)

var paused = flag.Duration("paused", 5*time.Second, "how long a holder is stopped")

// takes waits until a process has written the claim over another one, and returns
// when that was heard, and the claim.
func (p *play) takes(q *process, watched *changes, over claim, since time.Time) (claim, time.Time) {
	p.Helper()
	nc := p.owner(p.all[:]...)
	var now claim
	var at time.Time
	p.eventually(q.name+" claims the plane", func() error {
		written := watched.of(since)
		if len(written) == 0 {
			return errors.New("nobody wrote")
		}
		if _, err := row(nc, "plane", &now); err != nil {
			return err
		}
		if !now.by(q) || now.State != "held" || now.Generation != over.Generation+1 {
			return fmt.Errorf("over %+v stands %+v", over, now)
		}
		at = written[0].at
		return nil
	})
	return now, at
}

// TestAHolderIsKilled kills the process that holds the plane: the one that stands by
// has it in time, and connects go on, also while nobody holds it.
func TestAHolderIsKilled(t *testing.T) {
	p := begin(t)
	first := p.serve(p.all[:])
	first.holds()
	second := p.serve(p.all[:])
	second.waits(first)
	nc, sys := p.owner(p.all[:]...), p.system(p.all[:]...)
	before, _ := p.claimed(nc)
	who := second.person("somebody")
	who.comes(p.all[:]...)
	watched, load := p.watch(nc), who.load(p.all[:]...)

	killed := time.Now()
	first.kill()
	lost := p.gone(sys, before)
	_, taken := p.takes(second, watched, before, killed)
	if took := taken.Sub(lost); took > takenAfterLoss {
		t.Errorf("taken over %v after the servers saw the loss", took)
	}
	if s := second.holds(); s.Generation != before.Generation+1 {
		t.Errorf("status: %+v", s)
	}
	p.eventually("connects after the loss", func() error {
		if all, _ := between(load.so(), killed.Add(servedAgain), time.Now()); all < 20 {
			return fmt.Errorf("%d so far", all)
		}
		return nil
	})
	tried := load.end()
	for _, a := range tried {
		if a.err != nil && a.began.After(killed.Add(servedAgain)) {
			t.Errorf("a connect to %s that began %v after the kill: %v", a.to, a.began.Sub(killed), a.err)
		}
	}
	all, in := between(tried, lost, taken)
	if in == 0 {
		t.Errorf("of %d connects while nobody held the plane none was let in", all)
	}
	t.Logf("seen lost after %v, taken over %v later; meanwhile %d of %d connects", lost.Sub(killed), taken.Sub(lost), in, all)
	second.close()
}

// TestAHolderWasPausedBefore stops the holder before anybody could have heard from
// it: whoever comes next misses it all the same, and takes over.
func TestAHolderWasPausedBefore(t *testing.T) {
	p := begin(t)
	first := p.serve(p.all[:])
	first.holds()
	nc := p.owner(p.all[:]...)
	before, _ := p.claimed(nc)
	watched := p.watch(nc)
	first.signal(syscall.SIGSTOP)
	began := time.Now()
	second := p.serve(p.all[:])
	_, taken := p.takes(second, watched, before, began)
	if took := taken.Sub(began); took > patience/3 {
		t.Errorf("taken over %v after the other one started", took)
	}
	t.Logf("taken over %v after the other one started", taken.Sub(began))
	second.holds()
	first.signal(syscall.SIGCONT)
	first.waits(second)
	first.close()
	second.close()
}

// TestAHolderIsPaused stops the holder where it stands: it is kicked, the other one
// takes over in time, and when it goes on it lands nothing, stands by, and answers
// connects again.
func TestAHolderIsPaused(t *testing.T) {
	p := begin(t)
	first := p.serve(p.all[:])
	first.holds()
	second := p.serve(p.all[:])
	second.waits(first)
	nc := p.owner(p.all[:]...)
	before, _ := p.claimed(nc)
	who := second.person("somebody")
	who.comes(p.all[:]...)
	watched := p.watch(nc)
	second.knows(first)

	stopped := time.Now()
	first.signal(syscall.SIGSTOP)
	now, taken := p.takes(second, watched, before, stopped)
	if took := taken.Sub(stopped); took > takenAfterStop {
		t.Errorf("taken over %v after the stop", took)
	}
	second.holds()
	p.always("the plane is held while the former holder stands still", *paused-time.Since(stopped), func() error {
		s, err := second.plane()
		if err == nil && !s.HeldByUs {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})

	goesOn := time.Now()
	first.signal(syscall.SIGCONT)
	first.waits(second)
	stoodBy := time.Since(goesOn)
	first.serves(who)
	again := time.Since(goesOn)
	p.always("the former holder stands by", 2*time.Second, func() error {
		s, err := first.plane()
		if err == nil {
			err = waiting(s, second)
		}
		return err
	})
	if written := watched.of(taken.Add(1)); len(written) > 0 {
		t.Errorf("written after the takeover: %+v", written)
	}
	if stands, _ := p.claimed(nc); stands != now {
		t.Errorf("over %+v stands %+v", now, stands)
	}
	if s, err := second.plane(); err != nil || !s.HeldByUs || s.Generation != now.Generation {
		t.Errorf("the holder says %+v, %v", s, err)
	}
	t.Logf("taken over %v after the stop; stopped for %v; stands by %v and serves %v after it went on", taken.Sub(stopped), *paused, stoodBy, again)
	second.close()
	first.holds()
	first.close()
}
