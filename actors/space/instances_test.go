package space_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

const (
	endpoint = "svc_a"
	instance = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	subject  = "svc.ask"
)

// stage is a space, somebody who serves, and somebody who asks.
type stage struct {
	*world.World
	svc, asker world.Person
	dialer     *broker.Dialer
}

func newStage(t *testing.T, change ...func(*space.Config)) *stage {
	t.Helper()
	w := world.Open(t, change...)
	s := &stage{World: w, asker: w.Person("asker", "laptop", "svc.>")}
	var g world.Grant
	if status := w.Call("POST", "/v1/grants", map[string]any{
		"sub": "server", "actor": "svc", "scope": []string{}, "publish": []string{"svc.>"}, "subscribe": []string{"svc.>"}, "serve": true,
	}, &g); status != http.StatusCreated {
		t.Fatalf("grant: %d", status)
	}
	token, status := w.Exchange("server", "svc")
	if status != http.StatusOK {
		t.Fatalf("exchange: %d", status)
	}
	s.svc = w.With(g, token)
	material, err := trust.Load(t.Context(), trust.Directory(w.Config.SecretsDir), "main")
	s.must(err)
	s.dialer, err = broker.NewDialer(broker.Config{URL: w.Config.NATSURL, Space: "main", Material: material, Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) principal() messages.Principal {
	return messages.Principal{Owner: s.svc.Grant.Owner, Actor: s.svc.Grant.Actor}
}

func (s *stage) register() (messages.InstanceRegistered, error) {
	return s.Space.RegisterHostInstance(s.Context(), endpoint, instance, s.principal())
}

func (s *stage) registers() messages.InstanceRegistered {
	s.Helper()
	done, err := s.register()
	s.must(err)
	return done
}

// serve runs the service as the process of an epoch, which it says in its answers.
func (s *stage) serve(epoch uint64, more ...nats.Option) *nats.Conn {
	s.Helper()
	unheard := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // nobody here may be asked as $SRV
	nc := s.svc.Connect(append(more, unheard)...)
	service, err := micro.AddService(nc, micro.Config{Name: "svc", Version: "1.0.0"})
	s.must(err)
	s.must(service.AddEndpoint("ask", micro.HandlerFunc(func(r micro.Request) {
		_ = r.Respond([]byte(fmt.Sprint(epoch))) // to an asker who may have gone
	}), micro.WithEndpointSubject(subject)))
	s.must(nc.FlushTimeout(world.Patience))
	return nc
}

// answers is who answers: an epoch, or nobody.
func (s *stage) answers(asker *nats.Conn) string {
	s.Helper()
	answer, err := asker.Request(subject, nil, world.Patience)
	if errors.Is(err, nats.ErrNoResponders) {
		return "nobody"
	}
	s.must(err)
	return string(answer.Data)
}

// store is the ledger, over a connection that may write the rows of the instance.
func (s *stage) store() (*ledger.Store, *broker.Conn) {
	s.Helper()
	backend, conn := s.backend()
	return ledger.NewStore(backend, ledger.DefaultPatience()), conn
}

func (s *stage) backend() (ledger.Backend, *broker.Conn) {
	s.Helper()
	conn, err := s.dialer.Dial(s.Context(), broker.HostRegistration(endpoint, instance), func(*broker.Conn) error { return nil })
	s.must(err)
	s.Cleanup(func() { s.must(conn.Close(s.Context())) })
	config := stream.Config{Space: "main", Replicas: 1, Instance: instance}
	return stream.New(conn.NATS(), config, stream.NewLanes(1)), conn
}

// issue gives the process that is registered a credential, as long as it is that one.
func (s *stage) issue(to messages.InstanceRegistered, id string) error {
	store, _ := s.store()
	gate, _, err := store.Get(s.Context(), ledger.InstanceKey(endpoint, instance))
	s.must(err)
	value, err := ledger.EncodeInstanceCredential(ledger.InstanceCredential{ID: id, Holder: s.principal(), Endpoint: endpoint, Instance: instance,
		Epoch: to.Instance.Epoch, State: ledger.CredentialActive, Expires: time.Now().Add(time.Hour).Truncate(time.Second)})
	s.must(err)
	gate.Revision = to.Revision
	_, err = store.Apply(s.Context(), ledger.Batch{Writes: []ledger.Write{ledger.Create(ledger.InstanceCredentialKey(endpoint, instance, id), value), ledger.Touch(gate)}})
	return err
}

func (s *stage) credential(id string) ledger.CredentialState {
	s.Helper()
	store, _ := s.store()
	row, found, err := store.Get(s.Context(), ledger.InstanceCredentialKey(endpoint, instance, id))
	s.must(err)
	if !found {
		return "absent"
	}
	c, err := ledger.DecodeInstanceCredential(row)
	s.must(err)
	return c.State
}

func (s *stage) gate() messages.Instance {
	s.Helper()
	gate, err := s.Space.ObserveGate(s.Context(), endpoint, instance)
	s.must(err)
	return gate
}

// ended insists that no connection of a call is left, and that there were some.
func (s *stage) ended(atLeast int) {
	s.Helper()
	met := 0
	for _, c := range s.Space.Connections() {
		if c.Label == "cotal:host-registration:main:"+endpoint {
			if met++; !c.Ended {
				s.Errorf("%s has not ended", c.Label)
			}
		}
	}
	if met < atLeast {
		s.Errorf("%d connections of calls are listed", met)
	}
}

// A service restarts: before its new process may go on, the old one is connected
// nowhere, and nothing that was issued to it is good any more.
func TestAServiceIsFencedByItsSuccessor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	asker := s.asker.Connect()
	first := s.registers()
	if first.Instance.Epoch != 0 || first.Instance.State != messages.InstanceOpen {
		t.Fatalf("the first is %+v", first)
	}
	s.must(s.issue(first, "c-first"))
	dropped := make(chan struct{}, 1)
	s.serve(0, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { dropped <- struct{}{} }))
	if got := s.answers(asker); got != "0" {
		t.Fatalf("%s answers", got)
	}
	fenced := make(chan messages.Instance, 1)
	go func() {
		gate, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0)
		if err != nil {
			t.Errorf("await the fence: %v", err)
		}
		fenced <- gate
	}()

	second := s.registers()
	if second.Instance.Epoch != 1 || second.Revoked != 1 || second.Instance.RegistrationRevision <= first.Instance.RegistrationRevision {
		t.Errorf("the second is %+v", second)
	}
	if got := s.answers(asker); got != "nobody" {
		t.Errorf("%s answers", got)
	}
	select {
	case <-dropped:
	case <-time.After(world.Patience):
		t.Error("the former process is still connected")
	}
	if gate := <-fenced; gate.State == messages.InstanceOpen && gate.Epoch == 0 {
		t.Errorf("fenced by %+v", gate)
	}
	if got := s.credential("c-first"); got != ledger.CredentialRevoked {
		t.Errorf("what it was issued is %s", got)
	}
	if err := s.issue(first, "c-late"); !errors.Is(err, ledger.ErrLost) || s.credential("c-late") != "absent" {
		t.Errorf("the former process was issued something: %v", err)
	}
	s.must(s.issue(second, "c-second"))
	s.serve(1)
	if got := s.answers(asker); got != "1" {
		t.Errorf("%s answers", got)
	}
	if _, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0); err != nil { // at once
		t.Error(err)
	}
	s.ended(2)
}

// A process that comes back whenever it is dropped keeps its successor out, and learns
// that it is fenced.
func TestAFormerProcessThatStaysIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.registers()
	old := s.serve(0, nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0), nats.MaxReconnects(-1))
	if done, err := s.register(); !errors.Is(err, messages.InstanceHeld) || !strings.Contains(err.Error(), s.principal().String()) {
		t.Fatalf("got %+v, %v", done, err)
	}
	s.ended(2)
	fence, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0)
	if err != nil || fence.State != messages.InstanceFrozen || fence.Epoch != 0 {
		t.Errorf("fenced by %+v, %v", fence, err)
	}
	var list struct {
		Instances []map[string]any `json:"instances"`
	}
	if status := s.Call("GET", "/v1/instances/"+endpoint, nil, &list); status != http.StatusOK || len(list.Instances) != 1 ||
		list.Instances[0]["state"] != "frozen" || list.Instances[0]["held_by"] != fence.Operation.ID {
		t.Errorf("listed %d %+v", status, list)
	}
	old.Close()
	if second := s.registers(); second.Instance.Epoch != 1 {
		t.Errorf("the second is %+v", second)
	}
}

// Two processes start at once, each beside a space of its own: one wins.
func TestOfTwoStartsOneWins(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	s := newStage(t, inject.Into)
	s.registers()
	beside := s.Beside()
	held := inject.Arm(faults.Fault{Actor: "plane/observer", Harm: faults.Hold, Message: messages.ObserveServers{}})
	defer held.Disarm()
	loser := make(chan error, 1)
	go func() {
		_, err := s.register()
		loser <- err
	}()
	select {
	case <-held.Struck():
	case <-time.After(world.Patience):
		t.Fatal("nobody is evicted")
	}
	winner, err := beside.Space.RegisterHostInstance(s.Context(), endpoint, instance, s.principal())
	if err != nil || winner.Instance.Epoch != 1 {
		t.Errorf("the winner is %+v, %v", winner, err)
	}
	held.Disarm()
	if err := <-loser; !errors.Is(err, messages.InstanceSuperseded) {
		t.Errorf("the loser: %v", err)
	}
	if gate := s.gate(); gate != winner.Instance {
		t.Errorf("the gate is %+v", gate)
	}
}

// cutting lets a number of writes through and loses its process at the next, before or
// after it has landed.
type cutting struct {
	ledger.Backend
	left  int
	after bool
	sent  int
}

var errCut = errors.New("the process died")

func (c *cutting) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	if c.sent++; c.sent <= c.left {
		return c.Backend.Send(ctx, b)
	}
	if c.after {
		if _, err := c.Backend.Send(ctx, b); err != nil {
			return 0, err
		}
	}
	return 0, errCut
}

// A registration dies at each of its writes; it is repaired, but not while its
// connection lives, and not where there is nothing to repair.
func TestARegistrationThatDiedIsRepaired(t *testing.T) {
	t.Parallel()
	const writes = 3 // it freezes, revokes, and opens
	for n := range writes {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, landed %v", n, after), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				first := s.registers()
				s.must(s.issue(first, "c-first"))
				backend, conn := s.backend()
				cut := &cutting{Backend: backend, left: n, after: after}
				nobody := func(context.Context, []messages.Principal) error { return nil }
				_, err := ledger.NewRegistrar(ledger.NewStore(cut, ledger.DefaultPatience()), nobody, nil).Over(conn.User()).
					Register(t.Context(), messages.RegisterInstance{Endpoint: endpoint, Instance: instance, Principal: s.principal()})
				if !errors.Is(err, errCut) {
					t.Fatalf("it did not die: %v", err)
				}
				before := s.gate()
				frozen := n > 0 && !(n == 2 && after) || n == 0 && after
				if (before.State == messages.InstanceFrozen) != frozen {
					t.Fatalf("the gate is %+v", before)
				}
				if _, err := s.Space.RepairInstance(t.Context(), endpoint, instance); frozen && !errors.Is(err, messages.RegistrationAlive) ||
					!frozen && !errors.Is(err, messages.InstanceNotFrozen) || s.gate() != before {
					t.Fatalf("while it lives: %v, %+v", err, s.gate())
				}
				s.must(conn.Close(t.Context()))
				var opened map[string]any
				status := s.Call("POST", "/v1/repair", map[string]string{"endpoint": endpoint, "instance": instance}, &opened)
				if !frozen {
					if status != http.StatusPreconditionFailed || s.gate() != before {
						t.Errorf("nothing to repair: %d %v", status, opened)
					}
					return
				}
				if status != http.StatusOK || opened["state"] != "open" || opened["epoch"] != 0.0 {
					t.Errorf("repaired %d %v", status, opened)
				}
				if gate := s.gate(); gate.State != messages.InstanceOpen || gate.Epoch != 0 || gate.Generation != 2 || s.credential("c-first") != ledger.CredentialRevoked {
					t.Errorf("the gate is %+v, the credential %s", gate, s.credential("c-first"))
				}
				if _, err := s.Space.RepairInstance(t.Context(), endpoint, instance); !errors.Is(err, messages.InstanceNotFrozen) {
					t.Errorf("once more: %v", err)
				}
				if next := s.registers(); next.Instance.Epoch != 1 {
					t.Errorf("the next one is %+v", next)
				}
				s.ended(3)
			})
		}
	}
}

// What only says that something was written resolves nothing, however often.
func TestANudgeIsNoFence(t *testing.T) {
	t.Parallel()
	reads := make(chan struct{}, 1024) // more than there are
	s := newStage(t, func(c *space.Config) { c.Middleware = counting(reads) })
	s.registers()
	forger := s.Owner("ctrl")
	resolved := make(chan messages.Instance, 1)
	go func() {
		gate, err := s.Space.AwaitFence(s.Context(), endpoint, instance, 0)
		if err != nil {
			t.Error(err)
		}
		resolved <- gate
	}()
	await := func() {
		t.Helper()
		select {
		case <-reads:
		case gate := <-resolved:
			t.Fatalf("resolved to %+v", gate)
		case <-time.After(world.Patience):
			t.Fatal("nobody looks")
		}
	}
	await()
	began := time.Now()
	for range 20 {
		s.must(forger.Publish("cotal.main.changed.inst."+endpoint+"."+instance, nil))
		s.must(forger.Flush())
		await()
	}
	if took := time.Since(began); took > 60*time.Second { // 20 looks by the clock alone take longer
		t.Errorf("it looks by itself: %s", took)
	}
	if done := s.registers(); done.Instance.Epoch != 1 {
		t.Errorf("registered %+v", done)
	}
	if gate := <-resolved; gate.State == messages.InstanceOpen && gate.Epoch == 0 {
		t.Errorf("resolved to %+v", gate)
	}
}

// Who closes refuses; whoever waits is told.
func TestDoorsOfAClosingSpace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.registers()
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Space.AwaitFence(context.Background(), endpoint, instance, 0)
		waiting <- err
	}()
	s.Close()
	if err := <-waiting; !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("who waits: %v", err)
	}
	_, registered := s.register()
	_, repaired := s.Space.RepairInstance(t.Context(), endpoint, instance)
	_, observed := s.Space.ObserveGate(t.Context(), endpoint, instance)
	_, awaited := s.Space.AwaitFence(t.Context(), endpoint, instance, 0)
	for _, err := range []error{registered, repaired, observed, awaited} {
		if !errors.Is(err, messages.ServiceClosing) {
			t.Errorf("got %v", err)
		}
	}
}

// Calls that are inside when the space closes end in the order in which they came,
// before the plane does.
func TestCallsEndInTheOrderOfTheirAdmission(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	s := newStage(t, inject.Into)
	s.registers()
	s.serve(0, nats.NoReconnect())
	events := s.Space.Events(context.Background())
	const calls = 4
	held := inject.Arm(faults.Fault{Actor: "plane/observer", Harm: faults.Hold, Message: messages.ObserveServers{}})
	defer held.Disarm()
	names := []string{instance, "bbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccc", "dddddddddddddddddddddddddd"}
	for _, name := range names[1:] {
		_, err := s.Space.RegisterHostInstance(s.Context(), endpoint, name, s.principal())
		s.must(err)
	}
	told := make(chan error, calls)
	var order []string
	for _, name := range names {
		go func() {
			_, err := s.Space.RegisterHostInstance(s.Context(), endpoint, name, s.principal())
			told <- err
		}()
		s.Poll("the gate of "+name+" to be frozen", func() bool {
			gate, err := s.Space.ObserveGate(s.Context(), endpoint, name)
			return err == nil && gate.State == messages.InstanceFrozen
		})
	}
	for _, a := range s.Space.Tree() {
		if strings.HasPrefix(a.Path, "operations/") {
			order = append(order, a.Path)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Space.Close(s.Context()) }()
	for range calls {
		if err := <-told; !errors.Is(err, messages.ServiceClosing) {
			t.Errorf("who is inside is told %v", err)
		}
	}
	held.Disarm()
	s.must(<-closed)
	var ended []string
	for e := range events {
		if e.Kind == "resourceended" && (slices.Contains(order, e.Path) || e.Path == "plane/reader") {
			ended = append(ended, e.Path)
		}
	}
	if len(order) != calls || !slices.Equal(ended, append(order, "plane/reader")) {
		t.Errorf("they came as %v and ended as %v", order, ended)
	}
}

// What is refused opens no connection.
func TestWhatIsNoInstanceIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, c := range []struct {
		endpoint, instance string
		principal          messages.Principal
		want               error
	}{
		{"a.b", instance, s.principal(), messages.Malformed},
		{"", instance, s.principal(), messages.Malformed},
		{"*", instance, s.principal(), messages.Malformed},
		{"Svc", instance, s.principal(), messages.Malformed},
		{endpoint, "one", s.principal(), messages.Malformed},
		{endpoint, instance, messages.Principal{}, messages.Malformed},
		{endpoint, instance, messages.Principal{Owner: "x", Actor: "y"}, messages.Malformed},
		{"auth", instance, s.principal(), messages.InstanceForeign},
	} {
		if _, err := s.Space.RegisterHostInstance(t.Context(), c.endpoint, c.instance, c.principal); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	s.ended(0)
	if _, err := s.Space.ObserveGate(t.Context(), endpoint, instance); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("one that never registered: %v", err)
	}
	if gate, err := s.Space.AwaitFence(t.Context(), endpoint, instance, 7); err != nil || gate != (messages.Instance{}) {
		t.Errorf("fenced by %+v, %v", gate, err)
	}
	if _, err := s.Space.RepairInstance(t.Context(), endpoint, instance); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("repaired: %v", err)
	}
	s.registers()
	other := messages.Principal{Owner: s.asker.Grant.Owner, Actor: s.asker.Grant.Actor}
	if _, err := s.Space.RegisterHostInstance(t.Context(), endpoint, instance, other); !errors.Is(err, messages.InstanceForeign) {
		t.Errorf("another principal: %v", err)
	}
	all, err := s.Space.Instances(t.Context(), messages.ListInstances{})
	if err != nil || len(all.Items) != 2 || !slices.ContainsFunc(all.Items, func(i messages.Instance) bool { return i.Endpoint == "auth" }) {
		t.Errorf("listed %+v, %v", all, err)
	}
}

// Where nobody can be asked a successor is let in once whatever stood has run out, and
// is told until when that is.
func TestASuccessorOutlastsWhereNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	for _, lifetime := range []time.Duration{time.Second, 15 * time.Minute} {
		t.Run(lifetime.String(), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(c *space.Config) { c.Eviction, c.BearerLifetime = space.EvictionExpiry, lifetime })
			s.registers()
			began := time.Now()
			done, err := s.register()
			if lifetime > time.Minute {
				if !errors.Is(err, messages.InstanceHeld) || !strings.Contains(messages.PublicText(err), "runs out at") {
					t.Errorf("got %+v, %v", done, err)
				}
				return
			}
			if took := time.Since(began); err != nil || done.Instance.Epoch != 1 || took < lifetime {
				t.Errorf("got %+v, %v after %s", done, err, took)
			}
		})
	}
}
