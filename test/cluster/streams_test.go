package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// The streams, as operators know them.
const (
	authority = "KV_cotal_authority_" + spaceName
	records   = "KV_cotal_records_" + spaceName
	rows      = "$KV.cotal_authority_" + spaceName + "."
	changed   = "cotal." + spaceName + ".changed."
)

// tuple names a scanner's connection in the claim.
type tuple struct {
	ServerName string `json:"serverName"`
	ServerID   string `json:"serverId"`
	CID        uint64 `json:"cid"`
}

// claim is the record of who holds the plane.
type claim struct {
	Generation uint64 `json:"generation"`
	ClaimID    string `json:"claimId"`
	State      string `json:"state"`
	Ledger     tuple  `json:"ledger"`
	Records    tuple  `json:"records"`
	Host       string `json:"host"`
}

// by reports whether a process wrote the claim.
func (c claim) by(p *process) bool { return strings.HasPrefix(c.Host, p.instance+"@") }

// ask asks the JetStream API.
func ask(nc *nats.Conn, subject string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	m, err := nc.Request("$JS.API.STREAM."+subject, body, time.Second)
	if err != nil {
		return err
	}
	var refusal struct {
		Error *struct {
			Code        int `json:"err_code"`
			Description string
		}
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return err
	}
	if refusal.Error != nil {
		return &refused{refusal.Error.Code, refusal.Error.Description}
	}
	return json.Unmarshal(m.Data, answer)
}

type refused struct {
	code int
	text string
}

func (r *refused) Error() string { return fmt.Sprintf("%s (%d)", r.text, r.code) }

// The API's words for what is not there.
const (
	noStream  = 10059
	noMessage = 10037
)

func isNot(err error, code int) bool {
	var r *refused
	return errors.As(err, &r) && r.code == code
}

// stream is how a stream stands.
type stream struct {
	Cluster struct {
		Leader   string
		Replicas []struct {
			Name             string
			Current, Offline bool
		}
	}
}

// copied reports whether every server has its copy of a stream, if there is one yet.
func copied(nc *nats.Conn, name string) error {
	var s stream
	err := ask(nc, "INFO."+name, struct{}{}, &s)
	if isNot(err, noStream) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.Cluster.Leader == "" || len(s.Cluster.Replicas) != size-1 {
		return fmt.Errorf("%s: %+v", name, s.Cluster)
	}
	for _, r := range s.Cluster.Replicas {
		if !r.Current || r.Offline {
			return fmt.Errorf("%s lags in %s", r.Name, name)
		}
	}
	return nil
}

// leader is the server that leads the authority stream.
func (p *play) leader(nc *nats.Conn) (leads *server) {
	p.Helper()
	p.eventually("the stream has a leader", func() error {
		var s stream
		if err := ask(nc, "INFO."+authority, struct{}{}, &s); err != nil {
			return err
		}
		i := slices.IndexFunc(p.all[:], func(v *server) bool { return v.name == s.Cluster.Leader })
		if i < 0 {
			return fmt.Errorf("leader %q", s.Cluster.Leader)
		}
		leads = p.all[i]
		return nil
	})
	return leads
}

// follower is a server that does not lead the authority stream.
func (p *play) follower() *server {
	p.Helper()
	nc := p.owner(p.all[:]...)
	if isNot(ask(nc, "INFO."+authority, struct{}{}, new(stream)), noStream) {
		return p.all[0] // they are all alike yet
	}
	return p.others(p.leader(nc))[0]
}

// bystander is a server that leads neither the authority stream nor JetStream.
func (p *play) bystander() *server {
	p.Helper()
	nc := p.system(p.all[:]...)
	var leads string
	p.eventually("somebody leads JetStream", func() error {
		m, err := nc.Request("$SYS.REQ.SERVER.PING.JSZ", []byte(`{"leader_only":true}`), time.Second)
		if err != nil {
			return err
		}
		var said struct{ Server struct{ Name string } }
		err = json.Unmarshal(m.Data, &said)
		leads = said.Server.Name
		return err
	})
	rest := p.all[:]
	nc = p.owner(p.all[:]...)
	if !isNot(ask(nc, "INFO."+authority, struct{}{}, new(stream)), noStream) {
		rest = p.others(p.leader(nc))
	}
	return rest[slices.IndexFunc(rest, func(v *server) bool { return v.name != leads })]
}

// row reads the last value of a key, and its revision; 0 when there is none.
func row(nc *nats.Conn, key string, into any) (revision uint64, err error) {
	var answer struct {
		Message struct {
			Seq  uint64
			Data []byte
		}
	}
	err = ask(nc, "MSG.GET."+authority, map[string]string{"last_by_subj": rows + key}, &answer)
	if isNot(err, noMessage) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if into == nil {
		return answer.Message.Seq, nil
	}
	return answer.Message.Seq, json.Unmarshal(answer.Message.Data, into)
}

// claimed reads the claim.
func (p *play) claimed(nc *nats.Conn) (c claim, revision uint64) {
	p.Helper()
	p.eventually("the claim is read", func() (err error) {
		revision, err = row(nc, "plane", &c)
		return err
	})
	return c, revision
}

// change is a write that the stream took.
type change struct {
	key string
	at  time.Time // when it was heard here
}

// changes hears every write that the stream takes.
type changes struct {
	mu    sync.Mutex
	heard []change
}

// watch hears changes over the given servers from now on.
func (p *play) watch(nc *nats.Conn) *changes {
	p.Helper()
	c := &changes{}
	_, err := nc.Subscribe(changed+">", func(m *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard = append(c.heard, change{strings.TrimPrefix(m.Subject, changed), time.Now()})
	})
	p.must(err)
	p.must(nc.FlushTimeout(patience))
	return c
}

// of lists the changes of what only the holder of the plane may write, from a time on.
func (c *changes) of(since time.Time) (list []change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.heard {
		kind, _, _ := strings.Cut(one.key, ".")
		if slices.Contains([]string{"plane", "owed", "op", "frontier"}, kind) && !one.at.Before(since) {
			list = append(list, one)
		}
	}
	return list
}

// connected reports whether a server lists a connection.
func connected(nc *nats.Conn, t tuple) (bool, error) {
	body := fmt.Appendf(nil, `{"cid":%d}`, t.CID)
	m, err := nc.Request("$SYS.REQ.SERVER."+t.ServerID+".CONNZ", body, time.Second)
	if err != nil {
		return false, err
	}
	var answer struct {
		Data struct {
			Connections []struct {
				CID uint64
			}
		}
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return false, err
	}
	for _, c := range answer.Data.Connections {
		if c.CID == t.CID {
			return true, nil
		}
	}
	return false, nil
}

// gone waits until the servers list neither scanner of a claim, and returns when one
// of them was last known to be listed.
func (p *play) gone(nc *nats.Conn, c claim) (last time.Time) {
	p.Helper()
	last = time.Now()
	p.eventually("the servers have dropped the former scanners", func() error {
		asked := time.Now()
		for _, t := range []tuple{c.Ledger, c.Records} {
			listed, err := connected(nc, t)
			if err != nil {
				return err
			}
			if listed {
				last = asked
				return fmt.Errorf("%+v is listed", t)
			}
		}
		return nil
	})
	return last
}

// connects hears who connects to an account from now on; what it returns ends that
// and lists their labels.
func (p *play) connects(nc *nats.Conn, account string) func() []string {
	p.Helper()
	var mu sync.Mutex
	var labels []string
	sub, err := nc.Subscribe("$SYS.ACCOUNT."+p.account(account)+".CONNECT", func(m *nats.Msg) {
		var said struct{ Client struct{ Name string } }
		_ = json.Unmarshal(m.Data, &said)
		mu.Lock()
		defer mu.Unlock()
		labels = append(labels, said.Client.Name)
	})
	p.must(err)
	p.must(nc.FlushTimeout(patience))
	return func() []string {
		p.Helper()
		p.must(sub.Unsubscribe())
		p.must(nc.FlushTimeout(patience))
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(labels)
	}
}
