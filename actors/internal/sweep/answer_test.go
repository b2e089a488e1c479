package sweep

import (
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

const someServer = "NBEMIQO6KXGOVKZWGNUWSNMYQC2VVOJLMV7DLBBLCJWET55PGDV65GYW"

// Whatever an answer is, a page that counts as whole is what it says it is.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"server":{"name":"n1","id":"` + someServer + `"},"data":{"server_id":"` + someServer +
		`","num_connections":1,"total":1,"offset":0,"connections":[{"cid":7,"authorized_user":"u_x-laptop","account":"A","tags":["uid:x"]}]}}`))
	f.Add([]byte(`{"server":{"name":"n1","id":"` + someServer + `"},"data":{"connections":[null]}}`))
	f.Add([]byte(`{"server":null,"error":{"code":500}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := open(data)
		if err != nil {
			return
		}
		rows, err := readPage(e, "A")
		if err != nil {
			return
		}
		if e.Server.Name == "" || !IsServerID(e.Server.ID) || !strings.Contains(string(e.Data), "connections") {
			t.Fatalf("%s counts as whole", data)
		}
		seen := map[uint64]bool{}
		for _, r := range rows {
			if r.ClientID == 0 || seen[r.ClientID] || r.Account != "A" || r.unnamed() {
				t.Fatalf("%s counts as whole", data)
			}
			seen[r.ClientID] = true
		}
	})
}

// Whatever servers say of themselves and each other, a roster without a doubt is of
// servers that all answered.
func FuzzCensus(f *testing.F) {
	ping := `{"server":{"name":"n1","id":"` + someServer + `","cluster":"c"},"statsz":{"active_servers":1,"jetstream":{"meta":{"leader":"n1","cluster_size":1}}}}`
	limits := `{"server":{"name":"n1","id":"` + someServer + `"},"data":{"server_id":"` + someServer + `","auth_timeout":2}}`
	f.Add(ping, limits)
	f.Add(strings.Replace(ping, `"cluster_size":1`, `"cluster_size":2,"replicas":[{"name":"n2"}]`, 1), limits)
	f.Add(`{}`, `[]`)
	f.Fuzz(func(t *testing.T, ping, limits string) {
		c := &census{runs: map[string]*run{}}
		c.hearPing([]byte(ping))
		c.hearLimits([]byte(limits))
		r := c.roster()
		if len(r.Doubts) > 0 {
			return
		}
		if _, ok := Longest(r); !ok {
			t.Fatalf("no doubt about %+v", r)
		}
		for _, s := range r.Servers {
			if !s.Answered || s.ID == "" {
				t.Fatalf("no doubt about %+v", r)
			}
		}
	})
}

func TestWhatALeaderSaysOfItsReplicas(t *testing.T) {
	limits := `{"server":{"name":"n1","id":"` + someServer + `"},"data":{"server_id":"` + someServer + `","auth_timeout":2,"websocket":{"auth_timeout":5}}}`
	for name, tc := range map[string]struct{ meta, active, doubt string }{
		"it stands alone":                  {`{"leader":"n1","cluster_size":1}`, "1", ""},
		"one is away":                      {`{"leader":"n1","cluster_size":2,"replicas":[{"name":"n2","offline":true}]}`, "1", "server n2 does not answer"},
		"one has no name":                  {`{"leader":"n1","cluster_size":2,"replicas":[{"name":"Server name unknown at this time (peerID: x)"}]}`, "1", "forgotten"},
		"one is counted and not listed":    {`{"leader":"n1","cluster_size":2}`, "1", "counts 2 servers and lists 1"},
		"another one leads, and is silent": {`{"leader":"n2","cluster_size":2}`, "1", "no JetStream leader"},
		"nobody leads":                     {`{"leader":"","cluster_size":2}`, "1", "no JetStream leader"},
		"without JetStream":                {`null`, "1", ""},
		"more are counted than answer":     {`null`, "2", "2 servers are counted and 1 answer"},
		"it does not count":                {`null`, "0", "how many servers"},
	} {
		c := &census{runs: map[string]*run{}}
		c.hearPing([]byte(`{"server":{"name":"n1","id":"` + someServer + `","cluster":"c"},"statsz":{"active_servers":` + tc.active + `,"jetstream":{"meta":` + tc.meta + `}}}`))
		c.hearLimits([]byte(limits))
		r := c.roster()
		if (tc.doubt == "") != (len(r.Doubts) == 0) || !strings.Contains(strings.Join(r.Doubts, "\n"), tc.doubt) {
			t.Errorf("%s: the doubts are %q", name, r.Doubts)
		}
		if c.complete() != (tc.doubt == "" || strings.Contains(tc.doubt, "forgotten") || strings.Contains(tc.doubt, "lists")) {
			t.Errorf("%s: complete is %v", name, c.complete())
		}
		if tc.doubt == "" {
			if longest, ok := Longest(r); !ok || longest.Seconds() != 5 {
				t.Errorf("%s: a client may be connecting for %v", name, longest)
			}
		}
		if Single(r) {
			t.Errorf("%s: it counts as the only server of no cluster", name)
		}
	}
	twins := &census{runs: map[string]*run{}}
	for _, id := range []string{someServer, strings.Replace(someServer, "N", "M", 1)} {
		twins.of(sender{Name: "n1", ID: id})
	}
	if r := twins.roster(); !strings.Contains(strings.Join(r.Doubts, "\n"), "2 servers are called n1") {
		t.Errorf("two of one name: %q", r.Doubts)
	}
}

func TestARowOfNoOneLifeBelongsToEach(t *testing.T) {
	p := messages.Principal{Owner: "u_x", Actor: "laptop"}
	w := want([]messages.Target{{Principal: p, UID: "a"}})
	for tags, has := range map[string]bool{"": true, "uid:a": true, "uid:b": false, "uid:b uid:c": true} {
		if got := w.has(row{User: "u_x-laptop", Tags: strings.Fields(tags)}); got != has {
			t.Errorf("%q: %v", tags, got)
		}
	}
}
