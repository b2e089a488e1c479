package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// play is one test on the cluster.
type play struct {
	*testing.T
	*servers
	started int // processes
}

// begin waits until the cluster is whole. What the test does to the servers is
// undone when it ends.
func begin(t *testing.T) *play {
	t.Helper()
	p := &play{T: t, servers: stage}
	p.must(p.mend())
	p.Cleanup(func() { p.must(p.mend()) })
	p.whole()
	return p
}

func (p *play) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// eventually tries until there is no error. It is for what no event announces.
func (p *play) eventually(what string, try func() error) {
	p.Helper()
	late := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			p.Fatalf("%s: never; last: %v", what, err)
		}
	}
}

// always tries for a while, and there must not be an error.
func (p *play) always(what string, while time.Duration, try func() error) {
	p.Helper()
	over := time.After(while)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := try(); err != nil {
			p.Fatalf("%s: %v", what, err)
		}
		select {
		case <-tick.C:
		case <-over:
			return
		}
	}
}

// others are the servers but one.
func (p *play) others(but *server) []*server {
	return slices.DeleteFunc(slices.Clone(p.all[:]), func(v *server) bool { return v == but })
}

// dial connects to one of the servers until the test ends.
func (p *play) dial(to []*server, options ...nats.Option) *nats.Conn {
	p.Helper()
	ended := make(chan struct{}) // closed by the client's last word
	nc, err := nats.Connect(urls(to...), append(options, nats.IgnoreDiscoveredServers(), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.Timeout(patience),
		nats.ClosedHandler(func(*nats.Conn) { close(ended) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...) // or the library prints it
	p.must(err)
	p.Cleanup(func() { nc.Close(); <-ended })
	return nc
}

func (p *play) seed(account string) nkeys.KeyPair {
	p.Helper()
	raw, err := os.ReadFile(filepath.Join(p.made.OfflineDir, account+".seed"))
	p.must(err)
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(raw))))
	p.must(err)
	return pair
}

// account is the public key of an account.
func (p *play) account(name string) string {
	p.Helper()
	public, err := p.seed(name).PublicKey()
	p.must(err)
	return public
}

// owner connects as somebody who owns CTRL, and so sees the streams.
func (p *play) owner(to ...*server) *nats.Conn {
	p.Helper()
	user, err := nkeys.CreateUser()
	p.must(err)
	public, err := user.PublicKey()
	p.must(err)
	token, err := jwt.NewUserClaims(public).Encode(p.seed("ctrl"))
	p.must(err)
	return p.dial(to, nats.UserJWT(
		func() (string, error) { return token, nil },
		func(nonce []byte) ([]byte, error) { return user.Sign(nonce) },
	))
}

// system connects as somebody who sees every connection of the servers.
func (p *play) system(to ...*server) *nats.Conn {
	p.Helper()
	return p.dial(to, nats.UserCredentials(filepath.Join(p.made.OfflineDir, "break-glass-sys.creds")))
}

// whole waits until every server runs, counts the others, and one leads JetStream
// with the others at hand.
func (p *play) whole() {
	p.Helper()
	for _, v := range p.all {
		nc := p.system(v)
		p.eventually("the cluster of "+v.name+" is whole", func() error { return counts(nc) })
		nc.Close()
	}
	nc := p.owner(p.all[:]...)
	p.eventually("the streams are whole", func() error {
		for _, name := range []string{authority, records} {
			if err := copied(nc, name); err != nil {
				return err
			}
		}
		return nil
	})
	nc.Close()
}

// counts reports whether the cluster is whole as seen over one connection.
func counts(nc *nats.Conn) error {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING", inbox, nil); err != nil {
		return err
	}
	led := false
	for range size {
		m, err := sub.NextMsg(time.Second)
		if err != nil {
			return fmt.Errorf("a server does not answer: %w", err)
		}
		var said struct {
			Server struct{ Name string }
			Statsz struct {
				Active    int `json:"active_servers"`
				JetStream struct {
					Meta struct {
						Leader   string
						Replicas []struct {
							Name             string
							Current, Offline bool
						}
					}
				}
			}
		}
		if err := json.Unmarshal(m.Data, &said); err != nil {
			return err
		}
		if said.Statsz.Active < size { // one that was killed is counted on, for minutes
			return fmt.Errorf("%s counts %d servers", said.Server.Name, said.Statsz.Active)
		}
		if meta := said.Statsz.JetStream.Meta; meta.Leader == said.Server.Name && len(meta.Replicas) == size-1 {
			led = true
			for _, r := range meta.Replicas {
				if !r.Current || r.Offline {
					return fmt.Errorf("%s lags", r.Name)
				}
			}
		}
	}
	if !led {
		return errors.New("nobody leads JetStream")
	}
	return nil
}
