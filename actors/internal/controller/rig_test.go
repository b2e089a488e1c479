package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/messages"
)

const (
	endpoint = "runner"
	instance = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	uid      = "uuuuuuuuuuuuuuuuuuuuuuuuuu"
)

var (
	owner = "u_" + strings.Repeat("a", 26)
	other = "u_" + strings.Repeat("b", 26)
	boss  = messages.Principal{Owner: owner, Actor: "laptop"}
	// brisk gives up soon: nothing here waits for a server.
	brisk = ledger.Patience{First: time.Microsecond, Most: time.Millisecond, Budget: 5 * time.Second}
)

// rig is a ledger with a person who may run controllers, and an instance of his.
type rig struct {
	*testing.T
	backend *memory.Backend
	store   *ledger.Store
	desk    *controller.Desk
	// signed counts what was signed, by user.
	mu     sync.Mutex
	signed map[string]int
	clock  time.Time
	asked  int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, backend: memory.New(), signed: map[string]int{}, clock: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	r.store = ledger.NewStore(r.backend, brisk)
	r.desk = r.over(r.backend)
	r.grant(boss, messages.Interactive, "supervise")
	r.register(boss.Owner)
	return r
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = r.clock.Add(d)
}

// over is a desk of another process, over a backend.
func (r *rig) over(b ledger.Backend) *controller.Desk {
	return controller.New(ledger.NewStore(b, brisk), controller.Config{Space: "acme", ReceiptKey: messages.NewSecret(strings.Repeat("k", 32)),
		Sign: r.sign, Standing: time.Hour, Options: ledger.Options{Now: r.now}})
}

// sign says in plain text what a JWT would.
func (r *rig) sign(u broker.ControllerUser) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signed[u.User]++
	text, err := json.Marshal(u)
	return string(text), err
}

func (r *rig) signatures() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, times := range r.signed {
		n += times
	}
	return n
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) writer() *ledger.Writer {
	return ledger.NewWriter(r.store, ledger.Options{Instance: "test", Now: r.now})
}

func (r *rig) grant(p messages.Principal, kind messages.GrantKind, scope ...string) messages.GrantWritten {
	r.Helper()
	made, err := r.writer().PutGrant(r.Context(), messages.PutGrant{Principal: p, Kind: kind, By: "test", Allowance: messages.Allowance{Scope: scope}})
	r.must(err)
	return made
}

// register is one more process of the instance, of that owner's.
func (r *rig) register(owner string) messages.Instance {
	r.Helper()
	gone := func(context.Context, []messages.Principal) error { return nil }
	done, err := ledger.NewRegistrar(r.store, gone, nil).Register(r.Context(), messages.RegisterInstance{Endpoint: endpoint, Instance: instance,
		Principal: controller.Principal(owner, instance)})
	r.must(err)
	return done.Instance
}

// program is one start of a controller: it has keys of its own.
type program struct {
	*rig
	keys  messages.ControllerKeys
	epoch uint64
	// receipt is what activate gave.
	receipt messages.Secret
}

func user(t testing.TB) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func (r *rig) program(epoch uint64) *program {
	return &program{rig: r, epoch: epoch, keys: messages.ControllerKeys{Supervisor: user(r), Executor: user(r), Server: user(r), Recorder: user(r), Ledger: user(r)}}
}

// request is one of a program's at a door, complete, under an id of its own.
func (p *program) request(door messages.ControllerDoor) messages.ControllerRequest {
	p.asked++
	r := messages.ControllerRequest{Door: door, Space: "acme", Actor: boss.Actor, Endpoint: endpoint, Instance: instance, Epoch: p.epoch,
		ID: fmt.Sprintf("request-%020d", p.asked), Keys: p.keys}
	switch door {
	case messages.DoorPrepare:
	case messages.DoorActivate:
		r.Commands = []string{"start", "stop"}
	case messages.DoorSession:
		r.Session = messages.ControllerSession{ID: "s1", User: user(p), Expires: p.now().Add(time.Hour)}
	case messages.DoorRetire:
		r.Target = messages.ControllerTarget{Principal: messages.Principal{Owner: owner, Actor: "worker"}, UID: uid, Operation: ledger.OperationOf(uid), User: user(p)}
	}
	if door != messages.DoorPrepare && door != messages.DoorActivate {
		r.Receipt = p.receipt
	}
	return r
}

func (p *program) ask(r messages.ControllerRequest) (messages.ControllerIssued, error) {
	return p.desk.Answer(p.Context(), controller.Person{Principal: boss}, r)
}

// asks insists on an answer.
func (p *program) asks(door messages.ControllerDoor) messages.ControllerIssued {
	p.Helper()
	issued, err := p.ask(p.request(door))
	p.must(err)
	return issued
}

// starts goes by the first two doors.
func (p *program) starts() *program {
	p.Helper()
	p.asks(messages.DoorPrepare)
	p.receipt = p.asks(messages.DoorActivate).Receipt
	return p
}

// family is what the ledger holds of the instance's credentials, by id.
func (r *rig) family() map[string]ledger.InstanceCredential {
	r.Helper()
	all, err := ledger.Family(r.Context(), r.backend, endpoint, instance)
	r.must(err)
	found := map[string]ledger.InstanceCredential{}
	for _, c := range all {
		found[c.ID] = c
	}
	return found
}

// recorded insists that each credential which was released stands in the ledger, active.
func (r *rig) recorded(issued messages.ControllerIssued) {
	r.Helper()
	for _, c := range issued.Credentials {
		stands := false
		for id, row := range r.family() {
			if strings.HasPrefix(id, string(c.Kind)+"-"+c.User+"-") && row.State == ledger.CredentialActive && row.Expires.Equal(c.Expires) && row.Epoch == issued.Epoch {
				stands = true
			}
		}
		if !stands {
			r.Errorf("%s for %s was released and does not stand", c.Kind, c.User)
		}
	}
}

// refused insists on a refusal, and that nothing was signed.
func (p *program) refused(what string, want error, holder controller.Holder, r messages.ControllerRequest) {
	p.Helper()
	before := p.signatures()
	issued, err := p.desk.Answer(p.Context(), holder, r)
	if !errors.Is(err, want) || len(issued.Credentials) > 0 || !issued.Receipt.IsZero() {
		p.Errorf("%s at %s: %+v, %v, want %v", what, r.Door, issued, err, want)
	}
	if p.signatures() != before {
		p.Errorf("%s at %s: something was signed", what, r.Door)
	}
}
