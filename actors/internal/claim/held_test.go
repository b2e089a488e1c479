package claim_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func TestTheGuardComparesEverything(t *testing.T) {
	for what, alter := range map[string]func(*messages.Claim){
		"another state":         func(c *messages.Claim) { c.State = messages.ClaimFree; c.ID = "zzzzzzzzzzzzzzzzzzzzzzzzzz" },
		"another claim":         func(c *messages.Claim) { c.ID = "zzzzzzzzzzzzzzzzzzzzzzzzzz" },
		"another generation":    func(c *messages.Claim) { c.Generation++ },
		"the ledger's tuple":    func(c *messages.Claim) { c.Ledger.ClientID++ },
		"the records' tuple":    func(c *messages.Claim) { c.Records.ServerID = "NOTHER" },
		"a user swapped":        func(c *messages.Claim) { c.Ledger.User, c.Records.User = c.Records.User, c.Ledger.User },
		"another server's name": func(c *messages.Claim) { c.Ledger.ServerName = "n9" },
	} {
		t.Run(what, func(t *testing.T) {
			s := newSpace(t)
			held := s.acquire(s.process())
			altered := held.Claim()
			alter(&altered)
			s.putClaim(altered)
			at := s.plane().Revision
			s.want("guard", held.Guard(t.Context()), messages.ClaimLost)
			s.want("the next guard", held.Guard(t.Context()), messages.ClaimFenced)
			if !errors.Is(held.Reason(), messages.ClaimLost) {
				t.Errorf("the reason is %v", held.Reason())
			}
			s.want("release", held.Release(t.Context()), messages.ClaimLost)
			if s.plane().Revision != at {
				t.Error("the row was touched")
			}
		})
	}
}

func TestAGuardWithoutAnAnswerFencesNothing(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	held := s.acquire(s.over(line))
	line.setAway(true)
	if err := held.Guard(t.Context()); !errors.Is(err, messages.BrokerAway) || held.Reason() != nil {
		t.Errorf("guard: %v, fenced because %v", err, held.Reason())
	}
	line.setAway(false)
	if err := held.Guard(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAFenceAsksNobodyAndKeepsItsFirstReason(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	held := s.acquire(s.over(line))
	select {
	case <-held.Fenced():
		t.Fatal("it is fenced from the start")
	default:
	}
	first := errors.New("a scanner was lost")
	held.Fence(first)
	held.Fence(errors.New("something else"))
	<-held.Fenced()
	gets, sends := line.count()
	scanner := &never{t}
	_, err := held.Enumerate(t.Context(), scanner, ledger.Scan{Filter: "cred.>"})
	s.want("scan", err, messages.ClaimFenced)
	_, err = held.Lane().Write(t.Context(), step("a"))
	s.want("write", err, messages.ClaimFenced)
	s.want("guard", held.Guard(t.Context()), messages.ClaimFenced)
	if !errors.Is(err, first) || held.Reason() != first {
		t.Errorf("the reason is %v", held.Reason())
	}
	if g, n := line.count(); g != gets || n != sends {
		t.Error("a fenced holder asked the broker")
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("a fenced holder cannot give back what is still his: %v", err)
	}
}

// never is a scanner that must not be used.
type never struct{ *testing.T }

func (n *never) Scan(context.Context, ledger.Scan) ([]ledger.Row, error) {
	n.Error("it scanned")
	return nil, nil
}

// during is a scanner under which something happens.
type during struct {
	ledger.Scanner
	scans int
	do    func()
}

func (d *during) Scan(ctx context.Context, ask ledger.Scan) ([]ledger.Row, error) {
	d.scans++
	d.do()
	return d.Scanner.Scan(ctx, ask)
}

func TestAScanDuringWhichThePlaneIsLostCountsNothing(t *testing.T) {
	s := newSpace(t)
	held := s.acquire(s.process())
	s.died(held)
	scanner := &during{Scanner: s.backend, do: func() { s.acquire(s.process()) }}
	rows, err := held.Enumerate(t.Context(), scanner, ledger.Scan{Filter: ">"})
	s.want("scan", err, messages.ClaimLost)
	if rows != nil {
		t.Error("there is a result")
	}
	_, err = held.Enumerate(t.Context(), scanner, ledger.Scan{Filter: ">"})
	s.want("the next scan", err, messages.ClaimFenced)
	if scanner.scans != 1 {
		t.Errorf("%d scans", scanner.scans)
	}
}

func TestAScan(t *testing.T) {
	s := newSpace(t)
	held := s.acquire(s.process())
	rows, err := held.Enumerate(t.Context(), s.backend, ledger.Scan{Filter: ">", Milestone: ledger.Milestone{Key: ledger.PlaneKey, Revision: 1}})
	if err != nil || len(rows) != 1 || rows[0].Key != ledger.PlaneKey {
		t.Errorf("got %v, %v", rows, err)
	}
	_, err = held.Enumerate(t.Context(), s.backend, ledger.Scan{Filter: ">", Milestone: ledger.Milestone{Key: ledger.PlaneKey, Revision: 2}})
	s.want("a milestone that is not there", err, messages.ScanIncomplete)
	if err := held.Guard(t.Context()); err != nil {
		t.Errorf("a failed scan has cost the plane: %v", err)
	}
}

func TestReleaseTwiceWritesOnce(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	held := s.acquire(s.over(line))
	var releasing sync.WaitGroup
	for range 4 {
		releasing.Go(func() {
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	releasing.Wait()
	if _, sends := line.count(); sends != 2 { // the claim and the release
		t.Errorf("%d writes", sends)
	}
	s.want("guard", held.Guard(t.Context()), messages.ClaimReleased)
	_, err := held.Enumerate(t.Context(), &never{t}, ledger.Scan{Filter: ">"})
	s.want("scan", err, messages.ClaimReleased)
	_, err = held.Lane().Write(t.Context(), step("a"))
	s.want("write", err, messages.ClaimReleased)
	if held.Reason() != nil {
		t.Errorf("a release fenced: %v", held.Reason())
	}
}

func TestAReleaseThatReachesNobodyCanBeRepeated(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	held := s.acquire(s.over(line))
	at := s.plane().Revision
	line.setAway(true)
	s.want("release", held.Release(t.Context()), messages.ReleaseUnreachable)
	if s.plane().Revision != at {
		t.Error("the row moved")
	}
	_, err := held.Enumerate(t.Context(), &never{t}, ledger.Scan{Filter: ">"})
	s.want("a scan after it", err, messages.ClaimReleased)
	line.setAway(false)
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.acquire(s.process()).Claim().Generation; got != 2 {
		t.Errorf("the successor has generation %d", got)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("what is released stays released: %v", err)
	}
}

func TestAReleaseWhoseAnswerIsLost(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	held := s.acquire(s.over(line))
	line.after = once(func() error { return ledger.ErrUnknown })
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAReleaseThatFindsASuccessor(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	held := s.acquire(s.over(line))
	s.died(held)
	line.before = once(func() error { s.acquire(s.process()); return nil })
	s.want("release", held.Release(t.Context()), messages.ClaimLost)
	if got := s.plane(); got.Revision != 2 {
		t.Error("the successor's row was touched")
	}
}

func TestAReleaseEndsWithItsContext(t *testing.T) {
	s := newSpace(t)
	line := &counted{Backend: s.backend}
	held := s.acquire(s.over(line))
	line.setAway(true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	s.want("release", held.Release(ctx), messages.ReleaseUnreachable)
}
