package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/messages"
)

const (
	pingSubject   = "$SYS.REQ.SERVER.PING"
	limitsSubject = "$SYS.REQ.SERVER.PING.VARZ"
)

// statistics is the part of a server's PING that tells of other servers. Only the
// one that leads JetStream lists its replicas, those that are away included.
type statistics struct {
	Active    int `json:"active_servers"`
	JetStream *struct {
		Meta *struct {
			Leader   string    `json:"leader"`
			Size     int       `json:"cluster_size"`
			Replicas []replica `json:"replicas"`
		} `json:"meta"`
	} `json:"jetstream"`
}

type replica struct {
	Name string `json:"name"`
}

// nameless is how a leader names a replica whose name it does not know.
const nameless = "Server name unknown at this time"

// limits is the part of a server's VARZ that tells how long a client may take to
// be let in, by each of its doors.
type limits struct {
	ServerID    string  `json:"server_id"`
	AuthTimeout seconds `json:"auth_timeout"`
	Websocket   door    `json:"websocket"`
	MQTT        door    `json:"mqtt"`
	Leaf        door    `json:"leaf"`
}

type door struct {
	AuthTimeout seconds `json:"auth_timeout"`
}

type seconds float64

func (l limits) longest() time.Duration {
	s := max(l.AuthTimeout, l.Websocket.AuthTimeout, l.MQTT.AuthTimeout, l.Leaf.AuthTimeout)
	return time.Duration(float64(s) * float64(time.Second))
}

// Roster asks who the servers are, and returns once everybody known of has
// answered whole, or the deadline has passed. known are the names of servers met
// before. An error means that nobody could be asked.
func (o *Observer) Roster(ctx context.Context, known []string) (messages.Roster, error) {
	if o.own {
		return messages.Roster{}, messages.InternalFault.Because("an account cannot ask who the servers are")
	}
	ctx, cancel := context.WithTimeout(ctx, o.roster)
	defer cancel()
	c := &census{known: known, runs: map[string]*run{}}
	err := gather(ctx, o.nc, []question{{subject: pingSubject}, {subject: limitsSubject}}, func(number int, m *nats.Msg) bool {
		if number == 0 {
			c.hearPing(m.Data)
		} else {
			c.hearLimits(m.Data)
		}
		return c.complete()
	})
	if err == nil && len(c.runs) == 0 {
		err = Forbidden(o.nc)
	}
	return c.roster(), err
}

// census is what the answers tell of who the servers are.
type census struct {
	known  []string
	runs   map[string]*run // by server id
	active int             // how many servers some server counts
	// jetstream says that servers form a JetStream cluster, and leader that the one
	// that leads it has told its replicas.
	jetstream, led bool
	replicas       []string
	doubts         []string
}

// run is one run of a server that answered.
type run struct {
	sender
	pinged  bool
	limited bool
	timeout time.Duration
}

func (r *run) whole() bool { return r.pinged && r.limited }

func (c *census) doubt(format string, args ...any) {
	c.doubts = append(c.doubts, fmt.Sprintf(format, args...))
}

func (c *census) of(s sender) *run {
	r := c.runs[s.ID]
	if r == nil {
		r = &run{sender: s}
		c.runs[s.ID] = r
	}
	return r
}

func (c *census) hearPing(data []byte) {
	e, err := open(data)
	if err != nil {
		c.doubt("%v", err)
		return
	}
	var s statistics
	if err := json.Unmarshal(e.Stats, &s); err != nil || s.Active < 1 {
		c.doubt("server %s: it does not say how many servers there are", e.Server.Name)
		return
	}
	c.of(*e.Server).pinged = true
	c.active = max(c.active, s.Active)
	if s.JetStream == nil || s.JetStream.Meta == nil {
		return
	}
	c.jetstream = true
	if meta := s.JetStream.Meta; meta.Leader == e.Server.Name {
		c.hearLeader(meta.Replicas, meta.Size)
	}
}

// hearLeader takes the list of who leads; a second one, of another leader, only adds.
func (c *census) hearLeader(replicas []replica, size int) {
	c.led = true
	for _, r := range replicas {
		if r.Name == "" || strings.HasPrefix(r.Name, nameless) {
			c.doubt("the JetStream leader knows a server whose name it has forgotten")
			continue
		}
		c.replicas = append(c.replicas, r.Name)
	}
	if len(replicas)+1 < size {
		c.doubt("the JetStream leader counts %d servers and lists %d", size, len(replicas)+1)
	}
}

func (c *census) hearLimits(data []byte) {
	e, err := open(data)
	if err != nil {
		c.doubt("%v", err)
		return
	}
	var l limits
	if err := json.Unmarshal(e.Data, &l); err != nil || l.ServerID != e.Server.ID || l.AuthTimeout <= 0 {
		c.doubt("server %s: it does not say how long a client may be connecting", e.Server.Name)
		return
	}
	r := c.of(*e.Server)
	r.limited, r.timeout = true, l.longest()
}

// names are all servers known of, whoever told.
func (c *census) names() []string {
	all := slices.Concat(c.known, c.replicas)
	for _, r := range c.runs {
		all = append(all, r.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// answered reports whether some run of the named server answered whole.
func (c *census) answered(name string) bool {
	for _, r := range c.runs {
		if r.Name == name && r.whole() {
			return true
		}
	}
	return false
}

// complete reports whether waiting longer can bring nothing that is awaited.
func (c *census) complete() bool {
	if len(c.runs) == 0 || len(c.runs) < c.active || c.jetstream && !c.led {
		return false
	}
	for _, r := range c.runs {
		if !r.whole() {
			return false
		}
	}
	return !slices.ContainsFunc(c.names(), func(name string) bool { return !c.answered(name) })
}

// roster sums up.
func (c *census) roster() messages.Roster {
	out := messages.Roster{Doubts: c.doubts}
	count := map[string]int{}
	for _, r := range c.runs {
		count[r.Name]++
		out.Servers = append(out.Servers, messages.Server{
			Name: r.Name, ID: r.ID, Cluster: r.Cluster, Answered: r.whole(), AuthTimeout: r.timeout,
		})
		if !r.whole() {
			out.Doubts = append(out.Doubts, fmt.Sprintf("server %s answers only in part", r.Name))
		}
	}
	for _, name := range c.names() {
		switch count[name] {
		case 0:
			out.Servers = append(out.Servers, messages.Server{Name: name})
			out.Doubts = append(out.Doubts, missing(name))
			if slices.Contains(c.replicas, name) {
				out.Doubts = append(out.Doubts, stillPeer(name))
			}
		case 1:
		default:
			out.Doubts = append(out.Doubts, fmt.Sprintf("%d servers are called %s", count[name], name))
		}
	}
	out.Doubts = append(out.Doubts, c.uncounted()...)
	slices.SortFunc(out.Servers, func(a, b messages.Server) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// uncounted says which servers there may be besides those that have a name.
func (c *census) uncounted() (doubts []string) {
	switch {
	case len(c.runs) == 0:
		doubts = append(doubts, "no server answers")
	case len(c.runs) < c.active:
		doubts = append(doubts, fmt.Sprintf("%d servers are counted and %d answer", c.active, len(c.runs)))
	}
	if c.jetstream && !c.led {
		doubts = append(doubts, "no JetStream leader answers, so nobody lists the servers that are away")
	}
	return doubts
}

func missing(name string) string {
	return fmt.Sprintf("server %s does not answer; if it is gone for good: authplane roster forget %s", name, name)
}

// stillPeer is for a server that comes back onto every roster, however often it is
// forgotten, until the leader of JetStream forgets it too.
func stillPeer(name string) string {
	return fmt.Sprintf("the JetStream leader counts server %s; if it is gone for good, also: nats server cluster peer-remove %s", name, name)
}

// Longest is the longest that any server of the roster lets a client be
// connecting: what was decided before then has ended. ok is false when a server
// does not tell.
func Longest(r messages.Roster) (longest time.Duration, ok bool) {
	for _, s := range r.Servers {
		if s.AuthTimeout <= 0 {
			return 0, false
		}
		longest = max(longest, s.AuthTimeout)
	}
	return longest, len(r.Servers) > 0
}

// Single reports whether the roster is one server that stands alone.
func Single(r messages.Roster) bool {
	return len(r.Doubts) == 0 && len(r.Servers) == 1 && r.Servers[0].Cluster == ""
}
