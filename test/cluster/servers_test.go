package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cotal-ai/authplane/actors/space"
)

// spaceName is the one tenant of the cluster.
const spaceName = "main"

// size is how many servers there are.
const size = 3

// servers are a cluster. Each pair is joined by links that can be cut, and no route
// goes around them.
type servers struct {
	dir      string
	programs string // where the programs are
	made     space.Initialised
	all      [size]*server
	links    map[[2]int]*link // from one to another, by their numbers
}

// server is one nats-server, over all its runs.
type server struct {
	of     *servers
	number int
	name   string
	url    string // where clients reach its present run
	cmd    *exec.Cmd
	said   bytes.Buffer  // read it only when the process has ended
	ended  chan struct{} // closed when the present run has (capacity 0)
}

// startServers makes a space in dir and starts the servers on it.
func startServers(dir, programs string) (_ *servers, err error) {
	s := &servers{dir: dir, programs: programs, links: map[[2]int]*link{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.made, err = space.Init(ctx, space.InitOptions{Dir: filepath.Join(dir, "space"), Space: spaceName, NATSURL: "nats://127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	for from := range size {
		for to := range size {
			if from != to {
				if s.links[[2]int{from, to}], err = startLink(); err != nil {
					return nil, err
				}
			}
		}
	}
	var starting sync.WaitGroup
	failed := make([]error, size)
	for n := range size {
		s.all[n] = &server{of: s, number: n, name: fmt.Sprintf("n%d", n+1)}
		starting.Go(func() { failed[n] = s.all[n].start() })
	}
	starting.Wait()
	return s, errors.Join(failed...)
}

// start starts the server, again with what it kept, on whatever ports are free.
func (v *server) start() error {
	var routes []string
	for to := range size {
		if to != v.number {
			routes = append(routes, "nats-route://"+v.of.links[[2]int{v.number, to}].address())
		}
	}
	ports, err := os.MkdirTemp(v.of.dir, "ports-")
	if err != nil {
		return err
	}
	config, err := v.config()
	if err != nil {
		return err
	}
	v.said.Reset()
	v.cmd = exec.Command(filepath.Join(v.of.programs, "nats-server"), "-c", config, "-n", v.name,
		"-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", ports,
		"--cluster_name", "authplane", "--cluster", "nats://127.0.0.1:-1", "--no_advertise",
		"--cluster_advertise", fmt.Sprintf("127.0.0.1:%d", v.number+1), // where nobody is
		"--routes", strings.Join(routes, ","))
	v.cmd.Stdout, v.cmd.Stderr = &v.said, &v.said
	if err := v.cmd.Start(); err != nil {
		return err
	}
	v.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { // waited for through ended
		defer close(ended)
		_ = cmd.Wait()
	}(v.cmd, v.ended)
	return v.awaitPorts(filepath.Join(ports, fmt.Sprintf("nats-server_%d.ports", v.cmd.Process.Pid)))
}

// config writes the space's own configuration with a store for this server alone.
func (v *server) config() (string, error) {
	text, err := os.ReadFile(v.of.made.ServerConfig)
	if err != nil {
		return "", err
	}
	store := filepath.Join(filepath.Dir(v.of.made.ServerConfig), "jetstream")
	own := strings.Replace(string(text), store, filepath.Join(v.of.dir, v.name), 1)
	if own == string(text) {
		return "", fmt.Errorf("%s does not name the store %s", v.of.made.ServerConfig, store)
	}
	path := filepath.Join(v.of.dir, v.name+".conf")
	return path, os.WriteFile(path, []byte(own), 0o600)
}

// awaitPorts looks for the file in which the server says where it listens.
func (v *server) awaitPorts(file string) error {
	late := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var said struct{ Nats, Cluster []string }
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &said) == nil && len(said.Nats)*len(said.Cluster) > 0 {
			route, err := url.Parse(said.Cluster[0])
			if err != nil {
				return err
			}
			v.url = said.Nats[0]
			for from := range size {
				if from != v.number {
					v.of.links[[2]int{from, v.number}].leadTo(route.Host)
				}
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-v.ended:
			return fmt.Errorf("%s ended while starting:\n%s", v.name, v.said.String())
		case <-late:
			return fmt.Errorf("%s does not say where it listens", v.name)
		}
	}
}

// pause stops the server where it stands, resume lets it go on.
func (v *server) pause() error  { return v.cmd.Process.Signal(syscall.SIGSTOP) }
func (v *server) resume() error { return v.cmd.Process.Signal(syscall.SIGCONT) }

// kill ends the server at once.
func (v *server) kill() {
	_ = v.cmd.Process.Kill() // fails only when it has ended
	<-v.ended
}

// set cuts the server off from the others, or joins it to them again. When it has
// returned from a cut, nothing passes.
func (v *server) set(cut bool) {
	for pair, l := range v.of.links {
		if pair[0] == v.number || pair[1] == v.number {
			l.set(cut)
		}
	}
}

// mend undoes whatever a test did to the servers.
func (s *servers) mend() error {
	for _, l := range s.links {
		l.set(false)
	}
	var failed []error
	for _, v := range s.all {
		select {
		case <-v.ended:
			failed = append(failed, v.start())
		default:
			failed = append(failed, v.resume())
		}
	}
	return errors.Join(failed...)
}

func (s *servers) close() {
	for _, v := range s.all {
		if v != nil && v.ended != nil {
			v.kill()
		}
	}
	for _, l := range s.links {
		l.close()
	}
}

// urls lists where clients reach the servers, comma-separated.
func urls(list ...*server) string {
	var all []string
	for _, v := range list {
		all = append(all, v.url)
	}
	return strings.Join(all, ",")
}
