package operation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/operation"
	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// brisk is patience for a ledger in memory.
var brisk = ledger.Patience{First: time.Microsecond, Most: time.Millisecond, Budget: 10 * time.Second}

var laptop = messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "laptop"}

// issued is how many credentials the incarnation has; more than are revoked at once.
const issued = 201

// world is a ledger in which laptop lives and has credentials, and the servers that he
// is connected to.
type world struct {
	*testing.T
	backend *memory.Backend
	uid     string
	holders int

	mu      sync.Mutex
	evicted int
	// early says that somebody was evicted who could still be let in.
	early bool
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, backend: memory.New()}
	writer := w.writer()
	made, err := writer.PutGrant(t.Context(), messages.PutGrant{Principal: laptop, Kind: messages.Interactive, By: "x",
		Allowance: messages.Allowance{Publish: []string{"a.>"}}})
	w.must(err)
	w.uid = made.UID
	root, err := writer.Enrol(t.Context(), messages.Enrol{Principal: laptop, UID: w.uid})
	w.must(err)
	for i := range issued {
		_, err := writer.MintDescendant(t.Context(), ledger.MintDescendant{Principal: laptop, UID: w.uid, Root: root.CredentialID,
			ID: fmt.Sprintf("c%03d", i), Expires: time.Now().Add(time.Hour)})
		w.must(err)
	}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) writer() *ledger.Writer {
	return ledger.NewWriter(ledger.NewStore(w.backend, brisk), ledger.Options{Instance: "i"})
}

// Evict is operation.Evictor. It proves what it is asked, and notes whether denying
// was durable by then.
func (w *world) Evict(ctx context.Context, op messages.Operation, _ time.Time) (operation.Evicted, error) {
	if err := ctx.Err(); err != nil {
		return operation.Evicted{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.evicted++
	head := w.head()
	w.early = w.early || head.UID != op.UID || head.State == messages.HeadActive || w.active() > 0
	return operation.Evicted{Kicked: 5, How: messages.EvictionSwept, Servers: []string{"n1"}}, nil
}

func (w *world) head() messages.Head {
	w.Helper()
	found, err := ledger.NewReader(w.backend, nil).Authority(context.Background(), messages.ReadAuthority{Principal: laptop, Head: true})
	w.must(err)
	return found.Head
}

// active counts the credentials that may still be used.
func (w *world) active() (n int) {
	w.Helper()
	rows, err := w.backend.Scan(context.Background(), ledger.Scan{Filter: ledger.CredentialsOf(w.uid)})
	w.must(err)
	for _, row := range rows {
		c, err := ledger.DecodeCredential(row)
		w.must(err)
		if c.State == ledger.CredentialActive {
			n++
		}
	}
	return n
}

// Frontiers is operation.Frontiers.
func (w *world) Frontiers(context.Context) (map[string]uint64, error) {
	return map[string]uint64{"KV_cotal_records_main": 7}, nil
}

// process is one process that holds the plane, over a backend of its own.
type process struct {
	*world
	held    *claim.Held
	records *ledger.Barrier
	over    ledger.Backend
}

// boot claims the plane for a new process. Whoever held it is gone.
func (w *world) boot(ctx context.Context, over ledger.Backend) (*process, error) {
	store := ledger.NewStore(over, brisk)
	w.holders += 2
	connection := func(i int) messages.ConnectionTuple {
		user := "U" + strings.Repeat("A", 54) + string([]byte{'A' + byte(i)})
		return messages.ConnectionTuple{ServerName: "n1", ServerID: "NSERVER", ClientID: uint64(i), User: user}
	}
	held, err := claim.Acquire(ctx, claim.Config{Store: store, Oracle: everybodyIsGone{}, Run: &claim.Run{},
		Ledger: connection(w.holders - 1), Records: connection(w.holders), Host: "h"})
	if err != nil {
		return nil, err
	}
	return &process{world: w, held: held, records: ledger.NewBarrier(store, ledger.Options{}), over: over}, nil
}

type everybodyIsGone struct{}

func (everybodyIsGone) Liveness(context.Context, messages.ConnectionTuple) (messages.Verdict, string) {
	return messages.Gone, ""
}

func (p *process) ports() operation.Ports {
	return operation.Ports{Records: p.records, Lane: p.held.Lane(), Scanner: guarded{p}, Evictor: p.world, Frontiers: p.world}
}

// guarded enumerates as the holder.
type guarded struct{ *process }

func (g guarded) Scan(ctx context.Context, ask ledger.Scan) ([]ledger.Row, error) {
	return g.held.Enumerate(ctx, g.backend, ask)
}

// begin begins an operation, or finds it.
func (p *process) begin(ctx context.Context, kind messages.OperationKind) (id string, err error) {
	_, err = p.records.Land(ctx, p.held.Lane(), func(ctx context.Context) (ledger.Step, error) {
		if kind == messages.Takeover {
			op, step, err := p.records.BeginTakeover(ctx, messages.BeginTakeover{ID: takeoverID, Principal: laptop, UID: p.uid, By: "x"})
			id = op.ID
			return step, err
		}
		op, step, err := p.records.BeginRetirement(ctx, messages.AskRetirement{Principal: laptop, UID: p.uid, By: "x"})
		id = op.ID
		return step, err
	})
	return id, err
}

const takeoverID = "takeover00000000000000000000"

// run begins and runs an operation, or goes on with it.
func (p *process) run(ctx context.Context, kind messages.OperationKind) (messages.Operation, error) {
	id, err := p.begin(ctx, kind)
	if err != nil {
		return messages.Operation{}, err
	}
	return operation.Run(ctx, p.ports(), id)
}

// cut is a backend whose n-th write, counted from 1, is the last thing its process
// does.
type cut struct {
	ledger.Backend
	how  string
	at   int
	die  context.CancelFunc
	sent int
}

var errDead = errors.New("the process is dead")

func (c *cut) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	c.sent++
	if c.sent != c.at {
		return c.Backend.Send(ctx, b)
	}
	switch c.how {
	case "before":
		c.die()
		return 0, errDead
	case "after":
		if _, err := c.Backend.Send(ctx, b); err != nil {
			return 0, err
		}
		c.die()
		return 0, errDead
	default: // the answer is lost, and the process goes on
		if _, err := c.Backend.Send(ctx, b); err != nil {
			return 0, err
		}
		return 0, ledger.ErrUnknown
	}
}
