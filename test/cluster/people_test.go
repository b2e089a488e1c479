package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// owner is whose everybody is.
const owner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"

// person is somebody who may connect.
type person struct {
	*play
	actor, token string
}

// person grants somebody, through a process, and exchanges the proof.
func (q *process) person(actor string) *person {
	q.Helper()
	actor = fmt.Sprintf("%s_%d", actor, time.Now().UnixNano()) // nobody was ever called so
	var granted struct {
		Secret string `json:"actor_token"`
	}
	var exchanged struct{ Token string }
	q.eventually("grant "+actor, func() error {
		_, err := q.call(http.MethodPost, "/v1/grants", map[string]any{
			"owner": owner, "actor": actor, "kind": "managed", "scope": []string{}, "publish": []string{"demo.>"}, "subscribe": []string{"demo.>"},
		}, &granted, http.StatusCreated)
		return err
	})
	q.eventually("exchange "+actor, func() error {
		_, err := q.call(http.MethodPost, "/exchange", map[string]any{"owner": owner, "actor": actor, "actor_token": granted.Secret}, &exchanged, http.StatusOK)
		return err
	})
	return &person{q.play, actor, exchanged.Token}
}

// revoke revokes the person through a process, and returns when that was acknowledged.
func (q *process) revoke(who *person) time.Time {
	q.Helper()
	q.eventually("revoke "+who.actor, func() error {
		// It is not found when an earlier try landed unheard.
		_, err := q.call(http.MethodDelete, "/v1/grants/"+owner+"/"+who.actor, nil, nil, http.StatusOK, http.StatusNotFound)
		return err
	})
	return time.Now()
}

// clientPatience is a little above what a server has for a connect, and so tells
// silence from a refusal.
const clientPatience = 2500 * time.Millisecond

// try connects to one server, once.
func (w *person) try(to *server) error {
	ended := make(chan struct{}) // closed by the client's last word
	nc, err := nats.Connect(to.url, nats.UserCredentials(w.made.SentinelCreds), nats.Token(w.token),
		nats.CustomInboxPrefix("_INBOX_"+owner+"-"+w.actor), nats.Timeout(clientPatience),
		nats.NoReconnect(), nats.IgnoreDiscoveredServers(),
		nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
	if err != nil {
		return err
	}
	nc.Close()
	<-ended
	return nil
}

// comes waits until the person is let in by each of the servers.
func (w *person) comes(to ...*server) {
	w.Helper()
	for _, v := range to {
		w.eventually(w.actor+" connects to "+v.name, func() error { return w.try(v) })
	}
}

// isDenied reports whether err is a no, in contrast to silence.
func isDenied(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization violation")
}

// attempt is one connect.
type attempt struct {
	began, ended time.Time
	to           string
	err          error
}

// load is somebody connecting all the time.
type load struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu    sync.Mutex
	tried []attempt
}

func (w *person) newLoad() (*load, context.Context) {
	ctx, stop := context.WithCancel(w.Context())
	l := &load{stop: stop}
	w.Cleanup(func() { l.end() })
	return l, ctx
}

// load begins to connect to the servers, in turn, several at once.
func (w *person) load(to ...*server) *load {
	l, ctx := w.newLoad()
	for n := range 6 {
		l.all.Go(func() {
			for i := n; ctx.Err() == nil; i++ {
				l.try(w, to[i%len(to)])
			}
		})
	}
	return l
}

// knock begins to connect to a server at every interval, whatever became of the
// connects before.
func (w *person) knock(to *server, every time.Duration) *load {
	l, ctx := w.newLoad()
	l.all.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.all.Go(func() { l.try(w, to) })
			case <-ctx.Done():
				return
			}
		}
	})
	return l
}

func (l *load) try(w *person, to *server) {
	a := attempt{began: time.Now(), to: to.name}
	a.err = w.try(to)
	a.ended = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = append(l.tried, a)
}

// end stops connecting, waits, and returns what was tried.
func (l *load) end() []attempt {
	l.stop()
	l.all.Wait()
	return l.so()
}

// so is what was tried so far.
func (l *load) so() []attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tried)
}

// between counts the attempts that began in a span and how many of them were let in.
func between(tried []attempt, from, to time.Time) (all, in int) {
	for _, a := range tried {
		if !a.began.Before(from) && a.began.Before(to) {
			all++
			if a.err == nil {
				in++
			}
		}
	}
	return all, in
}
