package presence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/messages"
)

const server = "NBEMIQO6KXGOVKZWGNUWSNMYQC2VVOJLMV7DLBBLCJWET55PGDV65GYW"

func connection(cid uint64) messages.ConnectionRef {
	return messages.ConnectionRef{ServerID: server, ClientID: cid}
}

// clock is what a test says it is.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }
func newClock() *clock                   { return &clock{time.Unix(1_700_000_000, 0)} }

// party is processes that hear each other, and themselves, at once.
type party struct {
	*clock
	t      testing.TB
	tables map[string]*Table
	// still are processes that stand still: they say and hear nothing. deaf are those
	// that nothing reaches, their own words included.
	still, deaf map[string]bool
	kicks       []string // who kicked whom, and when
}

func newParty(t testing.TB, names ...string) *party {
	p := &party{clock: newClock(), t: t, tables: map[string]*Table{}, still: map[string]bool{}, deaf: map[string]bool{}}
	for _, name := range names {
		p.tables[name] = NewTable(name, "life-of-"+name, p.now)
	}
	return p
}

func (p *party) names() []string {
	var out []string
	for name := range p.tables {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// own is the connection that a process has.
func own(name string) []messages.ConnectionRef {
	return []messages.ConnectionRef{connection(uint64(name[0]))}
}

func (p *party) spread(from string, word []byte, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	if word == nil {
		return
	}
	for name, table := range p.tables {
		if !p.still[name] && !p.deaf[name] {
			table.Hear(from, word)
		}
	}
}

// pass lets time go by: everybody looks at each step, and speaks at every fifth.
func (p *party) pass(d time.Duration) {
	const step = 50 * time.Millisecond
	began := p.at
	for range d / step {
		p.advance(step)
		for _, name := range p.names() {
			if p.still[name] {
				continue
			}
			if p.at.UnixMilli()%sayEvery.Milliseconds() == 0 {
				word, err := p.tables[name].Say(own(name))
				p.spread(name, word, err)
			}
			for _, kick := range p.tables[name].Due() {
				p.kicks = append(p.kicks, fmt.Sprintf("%s kicks %s after %v", name, kick.Instance, p.at.Sub(began)))
			}
		}
	}
}

func (p *party) expect(want ...string) {
	p.t.Helper()
	if !slices.Equal(p.kicks, want) {
		p.t.Errorf("got %q, want %q", p.kicks, want)
	}
	p.kicks = nil
}

func TestTheHealthyLeaveEachOtherAlone(t *testing.T) {
	p := newParty(t, "a", "b", "c")
	p.pass(time.Minute)
	p.expect()
	for _, name := range p.names() {
		if peers := p.tables[name].Peers(); len(peers) != 3 || peers[0].Instance != "a" || len(peers[2].Connections) != 1 {
			t.Errorf("%s hears %+v", name, peers)
		}
	}
}

func TestWhoStandsStillIsKickedByEverybodyOnce(t *testing.T) {
	p := newParty(t, "a", "b", "c")
	p.pass(2 * time.Second)
	p.still["b"] = true
	p.pass(time.Minute)
	p.expect("a kicks b after 1s", "c kicks b after 1s")
	if peers := p.tables["a"].Peers(); len(peers) != 2 {
		t.Errorf("it is not forgotten: %+v", peers)
	}

	// It wakes up with a head full of silence, and blames nobody; if it stands still
	// again, it is kicked again.
	delete(p.still, "b")
	p.pass(3 * time.Second)
	p.expect()
	p.still["b"] = true
	p.pass(2 * time.Second)
	p.expect("a kicks b after 1s", "c kicks b after 1s")
	delete(p.still, "b")
	p.pass(time.Second)
	p.still["b"] = true
	p.pass(20 * time.Second)
	p.expect("a kicks b after 8s", "c kicks b after 8s") // not before 10 s have passed
}

func TestWhoIsExpectedAndNeverComesIsKicked(t *testing.T) {
	p := newParty(t, "a", "b")
	p.still["b"] = true // since before a listened
	a := p.tables["a"]
	a.Expect("a", own("a"))
	a.Expect("b", own("b"))
	p.pass(4 * time.Second)
	p.expect()
	if peers := a.Peers(); len(peers) != 1 || peers[0].Instance != "a" {
		t.Errorf("heard are %+v", peers)
	}
	a.Expect("b", own("b")) // does not begin anew
	p.pass(10 * time.Second)
	p.expect("a kicks b after 1s")
	p.pass(5 * time.Second)
	a.Expect("b", own("b"))
	p.pass(20 * time.Second)
	p.expect("a kicks b after 5s")
}

func TestWhoWasExpectedIsAPeerLikeAnyOtherOnceHeard(t *testing.T) {
	p := newParty(t, "a", "b")
	p.tables["a"].Expect("b", own("b"))
	p.pass(time.Second)
	p.tables["a"].Expect("", nil)
	if peers := p.tables["a"].Peers(); len(peers) != 2 {
		t.Errorf("heard are %+v", peers)
	}
	p.still["b"] = true
	p.pass(20 * time.Second)
	p.expect("a kicks b after 1s")
}

func TestWhoIsExpectedNoMoreIsLeftAlone(t *testing.T) {
	p := newParty(t, "a", "b", "c")
	p.still["b"], p.still["c"] = true, true
	a := p.tables["a"]
	a.Expect("b", own("b"))
	p.pass(2 * time.Second)
	a.Expect("c", own("c"))
	p.pass(2 * time.Second)
	a.Expect("", nil)
	p.pass(20 * time.Second)
	p.expect()
}

func TestWhoDoesNotHearItselfKicksNobody(t *testing.T) {
	p := newParty(t, "a", "b")
	p.pass(2 * time.Second)
	p.deaf["a"], p.still["b"] = true, true
	p.pass(time.Minute)
	p.expect()
	// From here on it hears, and silence counts.
	delete(p.deaf, "a")
	p.pass(3 * time.Second)
	p.expect("a kicks b after 1.25s")
}

func TestWhoJustJoinedAgainGivesTheOthersTime(t *testing.T) {
	p := newParty(t, "a", "b")
	p.pass(2 * time.Second)
	p.still["b"] = true
	p.pass(900 * time.Millisecond)
	p.tables["a"].Rejoin()
	p.pass(3 * time.Second)
	p.expect("a kicks b after 1s")
}

func TestWhoSaidGoodbyeIsNotKicked(t *testing.T) {
	p := newParty(t, "a", "b")
	p.pass(2 * time.Second)
	last, err := p.tables["b"].Say(own("b"))
	if err != nil {
		t.Fatal(err)
	}
	word, err := p.tables["b"].Leave()
	p.spread("b", word, err)
	p.spread("b", last, nil) // over another connection, late
	for _, leave := range []func() ([]byte, error){p.tables["b"].Leave, func() ([]byte, error) { return p.tables["b"].Say(own("b")) }} {
		if word, err := leave(); word != nil || err != nil {
			t.Errorf("it goes on talking: %s, %v", word, err)
		}
	}
	p.pass(time.Minute)
	p.expect()
	if peers := p.tables["a"].Peers(); len(peers) != 1 {
		t.Errorf("it is not forgotten: %+v", peers)
	}
}

func TestAKickThatFailed(t *testing.T) {
	p := newParty(t, "a", "b")
	a := p.tables["a"]
	p.pass(2 * time.Second)
	p.still["b"] = true
	p.pass(time.Second)
	p.expect("a kicks b after 1s")
	a.Unasked("b")
	p.pass(time.Second)
	p.expect("a kicks b after 500ms")
	a.Silent("b")
	p.pass(9 * time.Second)
	p.expect()
	p.pass(time.Second)
	p.expect("a kicks b after 500ms")
	p.pass(time.Minute)
	p.expect()
	a.Unasked("nobody")
	a.Silent("nobody")
}

func TestAPeerCannotHaveUsKickOurselves(t *testing.T) {
	p := newParty(t, "a")
	a := p.tables["a"]
	p.pass(time.Second)
	liar, err := word{Version: version, Life: "x", Count: 1, Connections: append(own("a"), connection(7))}.encode()
	p.spread("liar", liar, err)
	mine, err := word{Version: version, Life: "x", Count: 1, Connections: own("a")}.encode()
	p.spread("thief", mine, err)
	for range 40 {
		p.advance(50 * time.Millisecond)
		word, err := a.Say(own("a"))
		p.spread("a", word, err)
		for _, kick := range a.Due() {
			if kick.Instance != "liar" || !slices.Equal(kick.Connections, []messages.ConnectionRef{connection(7)}) {
				t.Errorf("got %+v", kick)
			}
			p.kicks = append(p.kicks, kick.Instance)
		}
	}
	p.expect("liar")
}

func TestTheTableIsBounded(t *testing.T) {
	p := newParty(t, "a")
	for i := range 3 * maxPeers {
		w, err := word{Version: version, Life: "x", Count: 1, Connections: own("b")}.encode()
		p.spread("peer"+strconv.Itoa(i), w, err)
	}
	many := make([]messages.ConnectionRef, 2*maxConnections)
	for i := range many {
		many[i] = connection(uint64(i + 1))
	}
	said, err := p.tables["a"].Say(many)
	p.spread("a", said, err)
	if peers := p.tables["a"].Peers(); len(peers) != maxPeers+1 {
		t.Errorf("it holds %d peers", len(peers))
	}
	if w, err := parse(said); err != nil || len(w.Connections) != maxConnections {
		t.Errorf("it says %d connections, %v", len(w.Connections), err)
	}
	for range 1000 {
		if _, err := p.tables["a"].Say(nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.tables["a"].sent); n > maxSent {
		t.Errorf("it remembers %d words", n)
	}
}

func TestWordsThatAreNone(t *testing.T) {
	good := `{"v":1,"life":"x","n":1,"connections":[{"server":"` + server + `","cid":5}],"leaving":false}`
	if _, err := parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		``, `null`, `[]`, `{`, good + good, good + "x",
		strings.Replace(good, `"v":1`, `"v":2`, 1),
		strings.Replace(good, `"life":"x"`, `"life":""`, 1),
		strings.Replace(good, `"n":1`, `"n":0`, 1),
		strings.Replace(good, `"n":1`, `"n":-1`, 1),
		strings.Replace(good, `"cid":5`, `"cid":0`, 1),
		strings.Replace(good, `"cid":5`, `"cid":5,"more":1`, 1),
		strings.Replace(good, server, "x.>", 1),
		strings.Replace(good, `"leaving"`, `"left"`, 1),
		strings.Replace(good, `"x"`, `"`+strings.Repeat("x", maxWord)+`"`, 1),
		`{"v":1,"life":"x","n":1,"connections":[` + strings.Repeat(`{"server":"`+server+`","cid":5},`, maxConnections) + `{"server":"` + server + `","cid":5}]}`,
	} {
		p := newParty(t, "a")
		p.tables["a"].Hear("b", []byte(bad))
		if len(p.tables["a"].peers) > 0 {
			t.Errorf("heard %.200s", bad)
		}
	}
}

func FuzzWord(f *testing.F) {
	f.Add([]byte(`{"v":1,"life":"x","n":1,"connections":[{"server":"` + server + `","cid":5}],"leaving":false}`))
	f.Add([]byte(`{"v":1,"life":"x","n":1,"connections":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := parse(data)
		if err != nil {
			return
		}
		again, err := w.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parse(again); err != nil || fmt.Sprint(back) != fmt.Sprint(w) {
			t.Fatalf("%s comes back as %s: %v", data, again, err)
		}
	})
}

// Whatever happens, nobody is kicked who was heard within a second, nor twice within
// ten seconds, nor by who does not hear himself; and who is silent long enough is.
func TestKicksFollowTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		table := NewTable("self", "life", c.now)
		var words [][]byte
		var sentAt []time.Time
		var echoed time.Time
		heard, kicked, count := map[string]time.Time{}, map[string]time.Time{}, map[string]uint64{}
		look := func() []Kick {
			due := table.Due()
			for _, kick := range due {
				switch name := kick.Instance; {
				case c.at.Sub(heard[name]) < silence:
					t.Fatalf("%s was heard %v ago", name, c.at.Sub(heard[name]))
				case echoed.IsZero() || c.at.Sub(echoed) > fresh:
					t.Fatalf("kicked, having heard nothing of its own")
				case !kicked[name].IsZero() && c.at.Sub(kicked[name]) < kickEvery:
					t.Fatalf("%s was kicked %v ago", name, c.at.Sub(kicked[name]))
				default:
					kicked[name] = c.at
				}
			}
			return due
		}
		say := func(arrives bool) {
			said, err := table.Say(nil)
			if err != nil {
				t.Fatal(err)
			}
			words, sentAt = append(words, said), append(sentAt, c.at)
			if arrives {
				table.Hear("self", said)
				echoed = c.at
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"":            func(*rapid.T) { look() },
			"time passes": func(t *rapid.T) { c.advance(time.Duration(rapid.IntRange(1, 700).Draw(t, "ms")) * time.Millisecond) },
			"say":         func(t *rapid.T) { say(rapid.Bool().Draw(t, "it comes back")) },
			"a late echo": func(t *rapid.T) {
				if len(words) == 0 {
					t.Skip("nothing said")
				}
				i := rapid.IntRange(max(0, len(words)-2*maxSent), len(words)-1).Draw(t, "which")
				table.Hear("self", words[i])
				if len(words)-i <= maxSent && sentAt[i].After(echoed) {
					echoed = sentAt[i]
				}
			},
			"a peer speaks": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"b", "c"}).Draw(t, "who")
				count[name]++
				said, err := word{Version: version, Life: "x", Count: count[name], Connections: own(name)}.encode()
				if err != nil {
					t.Fatal(err)
				}
				table.Hear(name, said)
				heard[name] = c.at
			},
		})
		// In the end everybody but this process falls silent.
		ever := map[string]bool{}
		for range 100 {
			c.advance(sayEvery)
			say(true)
			for _, kick := range look() {
				ever[kick.Instance] = true
			}
		}
		for name, at := range heard {
			if !ever[name] && kicked[name].Before(at) {
				t.Fatalf("%s was never kicked", name)
			}
		}
	})
}
