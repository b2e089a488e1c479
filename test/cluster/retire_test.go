package cluster

import (
	"syscall"
	"testing"
	"time"
)

// TestARetirementOutlivesItsHolders kills the holder of the plane as soon as it has
// answered that somebody will be retired, and the next one when everything of somebody
// else's is revoked: whoever takes over ends both with the proof.
func TestARetirementOutlivesItsHolders(t *testing.T) {
	p := begin(t)
	first := p.serve(p.all[:])
	first.holds()
	second := p.serve(p.all[:])
	second.waits(first)
	asked, revoked := second.person("asked"), second.person("revoked")
	lines, others := asked.everywhere(p.all[:]...), revoked.everywhere(p.all[:]...)

	id := first.retireLater(asked)
	killed := time.Now()
	first.kill()
	end := second.retire(asked)
	t.Logf("killed when it was asked: proved %v after", time.Since(killed))
	if end.OpID != id {
		t.Errorf("asked for %s, and got %s", id, end.OpID)
	}
	p.retired(end, asked, lines, p.all[:]...)

	third := p.serve(p.all[:])
	third.waits(second)
	id = second.retireLater(revoked)
	second.reaches(id, "revoked")
	killed = time.Now()
	second.kill()
	later := third.retire(revoked)
	t.Logf("killed when it had revoked: proved %v after", time.Since(killed))
	if later.OpID != id {
		t.Errorf("asked for %s, and got %s", id, later.OpID)
	}
	p.retired(later, revoked, others, p.all[:]...)
	third.same(asked, end)
	third.same(revoked, later)
	third.close()
}

// TestAPausedHolderOfAnOperation stops the holder where it stands while it waits to
// prove that somebody is gone. The other one proves it; the first lands nothing more
// when it goes on, and stands by.
func TestAPausedHolderOfAnOperation(t *testing.T) {
	p := begin(t)
	first := p.serve(p.all[:])
	first.holds()
	second := p.serve(p.all[:])
	second.waits(first)
	second.knows(first)
	nc := p.owner(p.all[:]...)
	before, _ := p.claimed(nc)
	who, other := second.person("somebody"), second.person("other")
	lines, others := who.everywhere(p.all[:]...), other.everywhere(p.all[:]...)
	watched := p.watch(nc)

	began := time.Now()
	id := first.retireLater(who)
	first.reaches(id, "revoked")
	stopped := time.Now()
	first.signal(syscall.SIGSTOP)
	p.takes(second, watched, before, stopped)
	second.holds()
	end := second.retire(who)
	t.Logf("stopped when it had revoked: proved %v after", time.Since(stopped))
	p.retired(end, who, lines, p.all[:]...)
	// Begun, revoked, evicted, drained, done: each was written once, by whoever held it.
	if n := watched.steps(id, who, began)["op"]; n != 5 {
		t.Errorf("the operation was written %d times", n)
	}

	goesOn := time.Now()
	first.signal(syscall.SIGCONT)
	first.waits(second)
	p.always("the former holder stands by", time.Second, func() error {
		s, err := first.plane()
		if err == nil {
			err = waiting(s, second)
		}
		return err
	})
	if written := watched.of(goesOn); len(written) > 0 {
		t.Errorf("written when it went on: %+v", written)
	}
	if n := watched.steps(id, who, goesOn)["head"]; n > 0 {
		t.Errorf("the gate was written %d times when it went on", n)
	}
	// It answers for what the other one runs.
	later := first.retire(other)
	p.retired(later, other, others, p.all[:]...)
	second.same(other, later)
	first.same(who, end)
	first.close()
	second.close()
}

// TestARetirementWaitsForAServer stops a server with connections of somebody who is
// retired: it stays open, says for whom it waits and what leads on, and ends by itself
// when the server goes on.
func TestARetirementWaitsForAServer(t *testing.T) {
	p := begin(t)
	still := p.bystander()
	q := p.serve(p.others(still))
	q.holds()
	who := q.person("somebody")
	lines := who.everywhere(p.all[:]...)
	p.must(still.pause())
	id := q.retireLater(who)
	said := func() error {
		return q.saysWhy(id, "authplane roster forget "+still.name, "server "+still.name+" does not answer")
	}
	p.eventually("the operation says what it waits for", said)
	p.hungUp(p.but(lines, still))
	p.always("it waits", time.Second, said)
	back := time.Now()
	p.must(still.resume())
	end := q.retire(who)
	t.Logf("proved %v after the server went on", time.Since(back))
	if end.OpID != id {
		t.Errorf("asked for %s, and got %s", id, end.OpID)
	}
	p.retired(end, who, lines, p.all[:]...)
	q.close()
}

// but are the lines to other servers than one, of a person who is everywhere.
func (p *play) but(lines []*line, v *server) (rest []*line) {
	for i, l := range lines {
		if p.all[i] != v {
			rest = append(rest, l)
		}
	}
	return rest
}
