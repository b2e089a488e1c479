package stream

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// desk reads when it is told to: each read says that it began, and ends when let go.
type desk struct {
	mu     sync.Mutex
	begun  int
	letGo  chan struct{}
	values map[string]int
}

func newDesk() *desk { return &desk{letGo: make(chan struct{}), values: map[string]int{}} }

// read answers with how many reads of the key had begun, this one included.
func (d *desk) read(ctx context.Context, key string) (ledger.Row, bool, error) {
	d.mu.Lock()
	d.begun++
	d.values[key]++
	value := d.values[key]
	d.mu.Unlock()
	select {
	case <-d.letGo:
		return ledger.Row{Key: key, Value: []byte(strconv.Itoa(value))}, true, nil
	case <-ctx.Done():
		return ledger.Row{}, false, ctx.Err()
	}
}

// ask calls from a goroutine of its own.
func ask(s *shared, ctx context.Context, key string, read readFunc) <-chan string {
	answer := make(chan string, 1)
	go func() {
		row, _, err := s.get(ctx, key, read)
		if err != nil {
			answer <- "error"
			return
		}
		answer <- string(row.Value)
	}()
	return answer
}

func TestNobodyJoinsAReadThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(), &shared{}
		s.open(t.Context())
		first := ask(s, t.Context(), "k", d.read)
		synctest.Wait()
		// The first read is on its way. Whoever comes now shares the next one.
		late := []<-chan string{ask(s, t.Context(), "k", d.read), ask(s, t.Context(), "k", d.read), ask(s, t.Context(), "k", d.read)}
		elsewhere := ask(s, t.Context(), "other", d.read)
		synctest.Wait()
		if d.begun != 2 {
			t.Fatalf("%d reads are on their way, want one of each key", d.begun)
		}
		for range 2 {
			d.letGo <- struct{}{}
		}
		synctest.Wait()
		if got := <-first; got != "1" {
			t.Errorf("the first got read %s", got)
		}
		if got := <-elsewhere; got != "1" {
			t.Errorf("the other key got read %s", got)
		}
		// The second read has begun: one who comes now gets the third.
		last := ask(s, t.Context(), "k", d.read)
		synctest.Wait()
		d.letGo <- struct{}{}
		for _, l := range late {
			if got := <-l; got != "2" {
				t.Errorf("one who came during the first read got read %s", got)
			}
		}
		d.letGo <- struct{}{}
		if got := <-last; got != "3" {
			t.Errorf("one who came during the second read got read %s", got)
		}
		synctest.Wait()
		if d.begun != 4 || len(s.lines) != 0 {
			t.Errorf("%d reads, %d lines left", d.begun, len(s.lines))
		}
		s.close()
	})
}

func TestAWaiterMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(), &shared{}
		s.open(t.Context())
		first := ask(s, t.Context(), "k", d.read)
		synctest.Wait()
		leaving, leave := context.WithCancel(t.Context())
		left, stays := ask(s, leaving, "k", d.read), ask(s, t.Context(), "k", d.read)
		synctest.Wait()
		leave()
		if got := <-left; got != "error" {
			t.Errorf("the one who left got %s", got)
		}
		d.letGo <- struct{}{}
		d.letGo <- struct{}{}
		if a, b := <-first, <-stays; a != "1" || b != "2" {
			t.Errorf("got %s and %s", a, b)
		}
		s.close()
	})
}

func TestCloseWaitsForReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(), &shared{}
		ctx, cancel := context.WithCancel(t.Context())
		s.open(ctx)
		under := ask(s, t.Context(), "k", d.read)
		synctest.Wait()
		waiting := ask(s, t.Context(), "k", d.read)
		synctest.Wait()
		cancel()
		s.close()
		if a, b := <-under, <-waiting; a != "error" || b != "error" {
			t.Errorf("got %s and %s", a, b)
		}
		if _, _, err := s.get(t.Context(), "k", d.read); !errors.Is(err, messages.Unproved) {
			t.Errorf("after the end: %v", err)
		}
	})
}
