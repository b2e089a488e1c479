package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// undecided waits until a standby says that nobody can tell whether the holder is
// gone, and which server does not answer, and makes sure that it stays so for a while.
func (q *process) undecided(holder *process, missing *server, while time.Duration) {
	q.Helper()
	said := func() error {
		s, err := q.plane()
		if err != nil {
			return err
		}
		if err := waiting(s, holder, "server "+missing.name+" does not answer"); err != nil {
			return err
		}
		if !strings.Contains(s.Next, "--server-lost") {
			return fmt.Errorf("next: %q", s.Next)
		}
		return nil
	}
	q.eventually(q.name+" cannot tell", said)
	q.always(q.name+" cannot tell", while, said)
}

// TestAServerIsCutOff cuts the holder's server off: nobody guesses. When it is back,
// the holder is found to live.
func TestAServerIsCutOff(t *testing.T) {
	p := begin(t)
	lone := p.follower()
	holder := p.serve([]*server{lone})
	held := holder.holds()
	standby := p.serve(p.others(lone))
	standby.waits(holder)
	nc := p.owner(p.others(lone)...)
	before, _ := p.claimed(nc)
	lone.set(true)
	standby.undecided(holder, lone, 2*time.Second)
	lone.set(false)
	back := time.Now()
	standby.waits(holder, "server "+lone.name+" lists it")
	t.Logf("found to live %v after its server was back", time.Since(back))
	if stands, _ := p.claimed(nc); stands != before {
		t.Errorf("over %+v stands %+v", before, stands)
	}
	if s := holder.holds(); s != held {
		t.Errorf("the holder says %+v, and said %+v", s, held)
	}
	standby.close()
	holder.close()
}

// TestAServerIsPaused stops the holder's server and kills the holder: nobody guesses.
// When the server goes on, it is found to be gone.
func TestAServerIsPaused(t *testing.T) {
	p := begin(t)
	still := p.follower()
	holder := p.serve([]*server{still})
	holder.holds()
	standby := p.serve(p.others(still))
	standby.waits(holder)
	nc := p.owner(p.others(still)...)
	before, _ := p.claimed(nc)
	watched := p.watch(nc)
	p.must(still.pause())
	holder.kill()
	standby.undecided(holder, still, time.Second)
	back := time.Now()
	p.must(still.resume())
	lost := p.gone(p.system(p.others(still)...), before)
	_, taken := p.takes(standby, watched, before, back)
	if took := taken.Sub(lost); took > takenAfterLoss {
		t.Errorf("taken over %v after the server saw the loss", took)
	}
	t.Logf("the server saw the loss %v after it went on; taken over %v later", lost.Sub(back), taken.Sub(lost))
	standby.holds()
	standby.close()
}

// TestAServerIsRestarted kills the holder and its server: a standby cannot tell. When
// the server runs again, nobody can be connected to what it was.
func TestAServerIsRestarted(t *testing.T) {
	p := begin(t)
	dead := p.follower()
	holder := p.serve([]*server{dead})
	holder.holds()
	standby := p.serve(p.others(dead))
	standby.waits(holder)
	nc := p.owner(p.others(dead)...)
	before, _ := p.claimed(nc)
	watched := p.watch(nc)
	dead.kill()
	holder.kill()
	standby.undecided(holder, dead, time.Second)
	p.must(dead.start())
	back := time.Now()
	_, taken := p.takes(standby, watched, before, back)
	t.Logf("taken over %v after the server was back", taken.Sub(back))
	standby.holds()
	standby.close()
}

// TestAServerIsLost kills the holder and its server: a standby cannot tell, until
// somebody who knows says that the server is gone for good.
func TestAServerIsLost(t *testing.T) {
	p := begin(t)
	dead := p.all[2]
	holder := p.serve([]*server{dead})
	holder.holds()
	standby := p.serve(p.others(dead))
	standby.waits(holder)
	nc := p.owner(p.others(dead)...)
	before, _ := p.claimed(nc)
	watched := p.watch(nc)
	died := time.Now()
	dead.kill()
	holder.kill()
	standby.undecided(holder, dead, time.Second)
	if s, _ := standby.plane(); !strings.Contains(s.WaitingFor, "--server-lost "+dead.name) {
		t.Errorf("it does not say how to go on: %q", s.WaitingFor)
	}
	told := time.Now()
	knows := p.serve(p.others(dead), "--server-lost", dead.name)
	_, taken := p.takes(knows, watched, before, died)
	t.Logf("taken over %v after the start of who was told", taken.Sub(told))
	knows.holds()
	standby.waits(knows)
	who := knows.person("somebody")
	who.comes(p.others(dead)...)
	standby.close()
	knows.close()
}

// TestAStaleLeaderAdmitsNobody cuts the leader of the authority stream off, with a
// responder and its clients on its side. Whoever is revoked on the other side is let
// in nowhere; and from when its last proof is too old, the lone responder lets in
// nobody at all.
func TestAStaleLeaderAdmitsNobody(t *testing.T) {
	p := begin(t)
	holder := p.serve(p.all[:])
	holder.holds()
	lone := p.leader(p.owner(p.all[:]...))
	holder.close()
	majority := p.serve(p.others(lone))
	majority.holds()
	minority := p.serve([]*server{lone})
	minority.waits(majority)
	victim, other := majority.person("victim"), majority.person("other")
	victim.comes(p.all[:]...)
	other.comes(p.all[:]...)
	minority.serves(victim)
	if now := p.leader(p.owner(p.all[:]...)); now != lone {
		t.Fatalf("the leader went from %s to %s", lone.name, now.name)
	}
	near, far := victim.knock(lone, 50*time.Millisecond), other.load(p.others(lone)...)
	bystander := other.load(lone)

	lone.set(true)
	cut := time.Now()
	revoked := majority.revoke(victim)
	p.eventually("enough was tried after the revocation", func() error {
		if all, _ := between(near.so(), revoked, time.Now()); all < 40 { // 2 s of them
			return fmt.Errorf("%d so far", all)
		}
		return nil
	})
	// The last proof was sent before the cut.
	const reach = 2 * time.Second
	check := func(what string, tried []attempt, until time.Time) {
		for _, a := range tried {
			if a.err == nil && a.began.After(cut.Add(reach)) && a.began.Before(until) {
				t.Errorf("%s was let in by a connect that began %v after the cut, %v after the revocation", what, a.began.Sub(cut), a.began.Sub(revoked))
			}
		}
	}
	mended := time.Now()
	check("the victim", near.so(), mended)
	check("another one", bystander.so(), mended)
	lone.set(false)
	p.eventually("the victim is refused by the responder that was alone", func() error {
		tried := near.so()
		i := slices.IndexFunc(tried, func(a attempt) bool { return a.began.After(mended) && isDenied(a.err) })
		if i < 0 {
			return fmt.Errorf("%d tries, the last: %v", len(tried), tried[len(tried)-1].err)
		}
		return nil
	})
	for _, a := range near.end() {
		if a.err == nil && a.began.After(revoked) {
			t.Errorf("the victim was let in by a connect that began %v after its revocation", a.began.Sub(revoked))
		}
	}
	meanwhile, let := between(far.end(), revoked, mended)
	if let == 0 {
		t.Errorf("on the other side none of %d was let in after the revocation", meanwhile)
	}
	bystander.end()
	minority.serves(other)
	_, after := between(near.so(), cut, cut.Add(reach))
	t.Logf("revoked %v after the cut; %d of the victim's connects let in after the cut, none after %v; meanwhile %d of %d on the other side",
		revoked.Sub(cut), after, reach, let, meanwhile)
	minority.close()
	majority.close()
}
