package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// identity is what a client connects with; Token is empty where no callout is asked.
type identity struct{ Creds, Token, Inbox string }

// connect connects with what the identity needs and the library's defaults otherwise.
func (i identity) connect(url string, more ...nats.Option) (*nats.Conn, error) {
	options := []nats.Option{nats.UserCredentials(i.Creds)}
	if i.Token != "" {
		options = append(options, nats.Token(i.Token), nats.CustomInboxPrefix(i.Inbox))
	}
	return nats.Connect(url, append(options, more...)...)
}

// calm keeps the client's own patience out of a rate.
var calm = nats.Timeout(10 * time.Second)

// clients are a process of their own, so that the service shares its scheduler and
// its heap with nobody, as in life. It does one order after another.
func (s *stage) clients() *child {
	s.Helper()
	var url string
	return spawn(s, "clients", s.config.NATSURL, &url)
}

// order is what clients are told to do; Who takes turns.
type order struct {
	Who []identity
	N   int
	// Storm has all N come in the same moment and stay; otherwise AtOnce come at a
	// time and leave at once.
	Storm  bool
	AtOnce int
	// Stay has those that come by turns not leave, until they are dropped or an order
	// comes to Part: it waits until they are dropped, and has the others leave.
	Stay, Part bool
}

// outcome is what came of an order. Times count from its beginning.
type outcome struct {
	Took time.Duration
	// Tries are all of a storm, each of a turn that ended well.
	Tries []try
	// Failures counts the others' errors.
	Failures map[string]int
	// Left is how many never got in; of an order to part, how many were not dropped.
	Left int
}

// try is one attempt to connect.
type try struct {
	From, To time.Duration
	In       bool
	Again    bool // not the first one of its client
}

func beClients(url string) error {
	say := json.NewEncoder(os.Stdout)
	if err := say.Encode(url); err != nil {
		return err
	}
	stay := &stayers{}
	for in := json.NewDecoder(os.Stdin); ; {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := say.Encode(o.carryOut(url, stay)); err != nil {
			return err
		}
	}
}

func (o order) carryOut(url string, stay *stayers) *outcome {
	switch {
	case o.Storm:
		return o.storm(url)
	case o.Part:
		return stay.part()
	case o.Stay:
		return stay.come(o, url)
	}
	return o.turn(url)
}

// stayers are clients that stay from one order to another.
type stayers struct {
	conns   []*nats.Conn
	dropped sync.WaitGroup // one for each
}

func (s *stayers) come(o order, url string) *outcome {
	out := newOutcomes()
	conns := make([]*nats.Conn, o.N)
	_ = each(o.N, o.AtOnce, func(i int) error { // the outcome has the errors
		conns[i] = out.try(func() (*nats.Conn, error) {
			s.dropped.Add(1)
			nc, err := o.Who[i%len(o.Who)].connect(url, calm, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { s.dropped.Done() }))
			if err != nil {
				s.dropped.Done()
			}
			return nc, err
		}, false)
		return nil
	})
	s.conns = conns
	return out.end()
}

// dropPatience is how long a client may take to learn that it was dropped.
const dropPatience = 10 * time.Second

func (s *stayers) part() *outcome {
	out := newOutcomes()
	gone := make(chan struct{}) // closed when all are
	go func() { s.dropped.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(dropPatience):
		for _, nc := range s.conns {
			if nc != nil && !nc.IsClosed() {
				out.Left++
				nc.Close()
			}
		}
		<-gone
	}
	s.conns = nil
	return out.end()
}

// turn makes connects and ends each as soon as it stands.
func (o order) turn(url string) *outcome {
	out := newOutcomes()
	_ = each(o.N, o.AtOnce, func(i int) error { // the outcome has the errors
		if nc := out.try(func() (*nats.Conn, error) { return o.Who[i%len(o.Who)].connect(url, calm) }, false); nc != nil {
			nc.Close()
		}
		return nil
	})
	return out.end()
}

const (
	// retryAfter and retryJitter are how a client of default configuration tries again.
	retryAfter, retryJitter = 2 * time.Second, 2 * time.Second
	// stormPatience is how long a storm may take.
	stormPatience = 60 * time.Second
)

// storm has everybody come at once, each trying until it is in, and stay until all
// the others are.
func (o order) storm(url string) *outcome {
	out := newOutcomes()
	conns := make([]*nats.Conn, o.N)
	together(o.N, func(i int) {
		for again := false; ; again = true {
			conns[i] = out.try(func() (*nats.Conn, error) { return o.Who[i%len(o.Who)].connect(url) }, again)
			if conns[i] != nil || out.late() {
				return
			}
			time.Sleep(retryAfter + rand.N(retryJitter)) // the pause of a client, which is part of what is measured
		}
	})
	out.end()
	var closing sync.WaitGroup
	for _, nc := range conns {
		if nc == nil {
			out.Left++
			continue
		}
		closing.Go(nc.Close)
	}
	closing.Wait()
	return &out.outcome
}

type outcomes struct {
	began time.Time
	mu    sync.Mutex
	outcome
}

func newOutcomes() *outcomes {
	return &outcomes{began: time.Now(), outcome: outcome{Failures: map[string]int{}}}
}

func (o *outcomes) late() bool { return time.Since(o.began) > stormPatience }

func (o *outcomes) end() *outcome {
	o.Took = time.Since(o.began)
	return &o.outcome
}

func (o *outcomes) try(connect func() (*nats.Conn, error), again bool) *nats.Conn {
	from := time.Since(o.began)
	nc, err := connect()
	t := try{From: from, To: time.Since(o.began), In: err == nil, Again: again}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Tries = append(o.Tries, t)
	if err != nil {
		o.Failures[kindOf(err)]++
		return nil
	}
	return nc
}

// kindOf drops what differs between equal errors.
func kindOf(err error) string {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() || errors.Is(err, nats.ErrTimeout) {
		return "timeout"
	}
	return cmp.Or(err.Error(), fmt.Sprintf("%T", err))
}
