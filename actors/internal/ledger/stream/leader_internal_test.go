package stream

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// proven is a reader whose proof and beat are as given, without a connection.
func proven(replicas int, proof, beat proof, life uint64) *LeaderReader {
	return &LeaderReader{cfg: ReaderConfig{Config: Config{Replicas: replicas}, ProveEvery: DefaultProveEvery},
		proof: proof, beat: beat, life: func() uint64 { return life }}
}

func TestWhatAReadMayRestOn(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) proof { return proof{at: now.Add(-d), life: 1} }
	former := func(d time.Duration) proof { return proof{at: now.Add(-d), life: 0} }
	fresh := ago(0)
	for name, c := range map[string]struct {
		replicas    int
		proof, beat proof
		good        bool
	}{
		"one replica, proved":            {1, fresh, proof{err: errIdle}, true},
		"one replica, drifted":           {1, proof{at: now, life: 1, err: messages.StreamDrifted}, fresh, false},
		"never proved":                   {1, proof{err: errIdle}, fresh, false},
		"proved in a former life":        {1, former(0), fresh, false},
		"proved long ago":                {1, ago(3*DefaultProveEvery + 1), fresh, false},
		"three replicas without a beat":  {3, fresh, proof{err: errIdle}, false},
		"a beat just now":                {3, fresh, fresh, true},
		"a beat 2 s ago":                 {3, fresh, ago(2 * time.Second), true},
		"a beat more than 2 s ago":       {3, fresh, ago(2*time.Second + 1), false},
		"a beat in a former life":        {3, fresh, former(0), false},
		"a beat, and a drift":            {3, proof{at: now, life: 1, err: messages.StreamDrifted}, fresh, false},
		"a beat, proved in another life": {3, former(0), fresh, false},
	} {
		until, err := proven(c.replicas, c.proof, c.beat, 1).usable(now, 1)
		if (err == nil) != c.good || (err != nil && !errors.Is(err, messages.Unproved)) {
			t.Errorf("%s: %v", name, err)
		}
		if c.good && c.replicas == 3 && !until.Equal(c.beat.at.Add(readReach)) {
			t.Errorf("%s: good until %v after the beat", name, until.Sub(c.beat.at))
		}
	}
}

func TestAnAnswerMustReachItsProof(t *testing.T) {
	life := uint64(1)
	reader := func(beat time.Duration) *LeaderReader {
		life = 1
		r := proven(3, proof{at: time.Now(), life: 1}, proof{at: time.Now().Add(-beat), life: 1}, 1)
		r.life = func() uint64 { return life }
		return r
	}
	if err := reader(0).guarded(func() error { return nil }); err != nil {
		t.Errorf("at once: %v", err)
	}
	if err := reader(0).guarded(func() error { life++; return nil }); !errors.Is(err, messages.Unproved) {
		t.Errorf("the connection was lost during the read: %v", err)
	}
	r := reader(0)
	late := func() error { r.beat.at = r.beat.at.Add(-time.Hour); return nil }
	if err := r.guarded(late); err != nil {
		t.Errorf("a beat that ages during the read is not the one it began with: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		if err := reader(2 * time.Second).guarded(func() error { time.Sleep(1500 * time.Millisecond); return nil }); err != nil {
			t.Errorf("answered 3.5 s after the beat: %v", err)
		}
		if err := reader(2 * time.Second).guarded(func() error { time.Sleep(1501 * time.Millisecond); return nil }); !errors.Is(err, messages.Unproved) {
			t.Errorf("answered later: %v", err)
		}
	})
	if err := reader(0).guarded(func() error { return messages.BrokerAway }); !errors.Is(err, messages.Unproved) || !errors.Is(err, messages.BrokerAway) {
		t.Errorf("no answer: %v", err)
	}
	if err := reader(0).guarded(func() error { return messages.RowCorrupt }); !errors.Is(err, messages.RowCorrupt) || errors.Is(err, messages.Unproved) {
		t.Errorf("a corrupt row: %v", err)
	}
}
