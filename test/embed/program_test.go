package embed_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// programEnv holds the installation when this binary is to be the program.
	programEnv = "AUTHPLANE_EMBEDDING_PROGRAM"
	// listensEnv has the program handle SIGTERM itself.
	listensEnv = "AUTHPLANE_EMBEDDING_PROGRAM_LISTENS"
	// itsOwnCode is what the program exits with, when it is the one who ends it.
	itsOwnCode = 42
)

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(program())
	}
	goleak.VerifyTestMain(m)
}

// said is one thing the program tells the test, on file 3: its standard output and
// error are what the space must leave alone.
type said struct {
	Step string
	// Printed is how much stood on standard error by then, in bytes.
	Printed int64 `json:",omitempty"`
	// Problem is what should not be so.
	Problem string `json:",omitempty"`
}

// teller says things, and how many bytes the process has printed by then.
type teller struct{ out *json.Encoder }

func (t teller) say(step string, problem error) {
	s := said{Step: step}
	if problem != nil {
		s.Problem = problem.Error()
	}
	if at, err := os.Stderr.Stat(); err == nil {
		s.Printed = at.Size()
	}
	_ = t.out.Encode(s) // nobody reads any more only when the test has failed
}

// program is somebody's program: it has an actor system with every default, tries
// to start a space where no broker is, starts one where there is, uses it, closes
// it on the first line of its input, and ends on the second.
func program() int {
	tell := teller{json.NewEncoder(os.NewFile(3, "test"))}
	lines := bufio.NewScanner(os.Stdin)
	heard := make(chan os.Signal, 1) // the one that the test sends
	if os.Getenv(listensEnv) != "" {
		signal.Notify(heard, syscall.SIGTERM)
	}
	var i installation
	if err := json.Unmarshal([]byte(os.Getenv(programEnv)), &i); err != nil {
		tell.say("configure", err)
		return 1
	}
	system := actor.NewActorSystem()
	before, goroutines := surroundings(system), goleak.IgnoreCurrent()
	tell.say("begun", nil)

	tell.say("start without a broker", startInVain(system, i))
	handle, err := space.Start(context.Background(), system, i.config())
	if err != nil {
		tell.say("start", err)
		return 1
	}
	tell.say("open", ready(system, handle))
	if os.Getenv(listensEnv) != "" {
		<-heard
		tell.say("heard", ready(system, handle))
	}
	lines.Scan()
	tell.say("closed", closed(system, handle))
	tell.say("left", left(system, before, goroutines))
	lines.Scan()
	return itsOwnCode
}

// startInVain starts a space where nobody listens.
func startInVain(system *actor.ActorSystem, i installation) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	i.NATSURL, i.StateDir = "nats://"+listener.Addr().String(), i.StateDir+"/in-vain"
	if err := listener.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := space.Start(ctx, system, i.config()); err == nil {
		return fmt.Errorf("a space opened on %s", i.NATSURL)
	}
	return nil
}

// ready asks the space as one actor asks another.
func ready(system *actor.ActorSystem, handle *space.Handle) error {
	answer, err := system.Root.RequestFuture(handle.PID(), messages.GetStatus{}, patience).Result()
	if err != nil {
		return err
	}
	if status, ok := answer.(messages.Status); !ok || status.State != messages.SpaceReady {
		return fmt.Errorf("the space answers %+v", answer)
	}
	return nil
}

func closed(system *actor.ActorSystem, handle *space.Handle) error {
	ended := make(chan struct{})
	watcher := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(handle.PID())
		case *actor.Terminated:
			if m.Who.Equal(handle.PID()) {
				close(ended)
			}
		}
	}))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := handle.Close(ctx); err != nil {
		return err
	}
	for what, end := range map[string]<-chan struct{}{"Closed": handle.Closed(), "the watcher": ended} {
		select {
		case <-end:
		case <-ctx.Done():
			return fmt.Errorf("%s is not told of the end", what)
		}
	}
	return system.Root.StopFuture(watcher).Wait()
}

// around is what of the program a space has no business with.
type around struct {
	config   string
	actors   []string
	logger   *slog.Logger
	prefix   string
	signals  map[syscall.Signal]bool
	workDir  string
	unmasked int
}

func surroundings(system *actor.ActorSystem) around {
	a := around{
		config: fmt.Sprintf("%p %+v", system.Config, *system.Config), actors: actorsIn(system),
		logger: slog.Default(), prefix: fmt.Sprint(log.Writer(), log.Flags(), log.Prefix()), signals: map[syscall.Signal]bool{},
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR1} {
		a.signals[s] = signal.Ignored(s)
	}
	a.workDir, _ = os.Getwd()
	a.unmasked = syscall.Umask(0o77)
	syscall.Umask(a.unmasked)
	return a
}

// actorsIn lists the system's processes, but for what bears the name of a space: at
// the address of each actor that has ended stands a gravestone, so that who still
// writes there is answered.
func actorsIn(system *actor.ActorSystem) []string {
	var names []string
	for _, bucket := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, name := range bucket.Keys() {
			if !strings.HasPrefix(name, "acme$") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// left tells what of a closed space is left in the program.
func left(system *actor.ActorSystem, before around, goroutines goleak.Option) error {
	if after := surroundings(system); fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) {
		return fmt.Errorf("before: %+v; after: %+v", before, after)
	}
	return goleak.Find(goroutines)
}
