package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAServerIsGoneForGood has a server leave that somebody was connected to who is
// retired. It is proved only when each command was given that the operation names.
func TestAServerIsGoneForGood(t *testing.T) {
	own, err := startServers(t.TempDir(), stage.programs) // it will not be whole again
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.close)
	p := &play{T: t, servers: own}
	p.whole()
	q := p.serve(p.all[:])
	q.holds()
	lost := p.bystander()
	left := p.others(lost)
	who := q.person("somebody")
	lines := who.everywhere(p.all[:]...)
	lost.leave()
	gone := time.Now()
	id := q.retireLater(who)
	q.waitsFor(id, "authplane roster forget "+lost.name, "server "+lost.name+" does not answer",
		"nats server cluster peer-remove "+lost.name)
	t.Logf("said %v after it left", time.Since(gone))
	p.eventually("every server is on the roster", func() error {
		if known := q.command("roster"); len(known.Servers) != size {
			return fmt.Errorf("known are %q", known.Servers)
		}
		return nil
	})
	if known := q.command("roster", "forget", lost.name); len(known.Servers) != size-1 {
		t.Errorf("known are %q", known.Servers)
	}
	t.Logf("forgotten %v after it left", time.Since(gone))
	// It comes back onto the roster as long as the leader of JetStream counts it.
	q.waitsFor(id, "authplane roster forget "+lost.name, "the JetStream leader counts server "+lost.name)
	t.Logf("named again %v after it left", time.Since(gone))
	p.removePeer(left, lost)
	removed := time.Now()
	q.forget(lost)
	end := q.retire(who)
	t.Logf("proved %v after the server was forgotten for good", time.Since(removed))
	if end.OpID != id {
		t.Errorf("asked for %s, and got %s", id, end.OpID)
	}
	p.retired(end, who, lines, left...)
	q.close()
}

// leave has the server end as it should, saying so to the others.
func (v *server) leave() {
	_ = v.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended
	<-v.ended
}

// removePeer has the leader of JetStream forget a server, as `nats server cluster
// peer-remove` does.
func (p *play) removePeer(left []*server, lost *server) {
	p.Helper()
	nc := p.system(left...)
	p.eventually("the leader of JetStream forgets "+lost.name, func() error {
		m, err := nc.Request("$JS.API.SERVER.REMOVE", []byte(`{"peer":"`+lost.name+`"}`), 5*time.Second)
		if err != nil {
			return err
		}
		var answer struct {
			Success bool
			Error   *struct{ Description string }
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return err
		}
		if answer.Error != nil {
			return errors.New(answer.Error.Description)
		}
		return nil
	})
}

// roster are the servers that a process knows of.
type roster struct{ Servers []string }

// command runs the program as an operator would on the process's machine.
func (q *process) command(arguments ...string) (said roster) {
	q.Helper()
	cmd := exec.Command(filepath.Join(q.programs, "authplane"), append(arguments, "--json", "--dir", q.state)...)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		q.Fatalf("authplane %q: %v\n%s", arguments, err, talk.String())
	}
	q.must(json.Unmarshal(out, &said))
	return said
}

// forget gives the command until the server stays forgotten: a sweep that was under
// way may have met it once more.
func (q *process) forget(lost *server) {
	q.Helper()
	q.eventually(lost.name+" is forgotten", func() error {
		for _, name := range q.command("roster").Servers {
			if name == lost.name {
				q.command("roster", "forget", lost.name)
				return errors.New("it was known")
			}
		}
		return nil
	})
}
