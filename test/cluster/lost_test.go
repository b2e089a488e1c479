package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
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
	q.retire(q.person("earlier")) // so that all servers were met
	who := q.person("somebody")
	lines := who.everywhere(p.all[:]...)
	lost.leave()
	gone := time.Now()
	id := q.retireLater(who)
	next, silent := "authplane roster forget "+lost.name, "server "+lost.name+" does not answer"
	q.waitsFor(id, next, silent, "nats server cluster peer-remove "+lost.name)
	t.Logf("said %v after it left", time.Since(gone))
	p.removePeer(left, lost)
	// It stays on the roster as long as nobody has it forgotten.
	p.must(q.saysWhy(id, next, silent))
	if known := q.command("roster"); len(known.Servers) != size {
		t.Errorf("known are %q", known.Servers)
	}
	forgotten := time.Now()
	if known := q.command("roster", "forget", lost.name); len(known.Servers) != size-1 {
		t.Errorf("known are %q", known.Servers)
	}
	end := q.retire(who)
	t.Logf("proved %v after the server was forgotten", time.Since(forgotten))
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
