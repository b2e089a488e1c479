package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Cuts runs what takes several durable writes, cut at each of them in every way:
// whatever is left must hold, and whoever comes next must end where the first would
// have. open gives a new and empty backend; without names of works all are run.
func Cuts(t *testing.T, open func(t *testing.T) Subject, works ...string) {
	for _, w := range []work{
		{"takeover", runTakeover, takeoverDone}, {"retirement", runRetirement, retirementDone},
		{"retirement over a takeover", runSuperseding, retirementDone}, {"handle revocation", runHandle, handleDone},
		{"session redemption", runRedemption, redemptionDone}, {"mint", runMint, mintDone},
		{"asking for a retirement", runAsking, askingDone}, {"roster", runRoster, rosterDone},
	} {
		if len(works) > 0 && !slices.Contains(works, w.name) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			writes := 0
			within(t, patience, open, func(t *testing.T, ctx context.Context, s *bench) {
				scene, clean := s.scene(t, ctx), &cutting{Backend: s.backend, at: -1}
				if err := w.run(ctx, scene, clean); err != nil {
					t.Fatal(err)
				}
				w.done(t, ctx, scene)
				writes = clean.sends
			})
			for at := range writes {
				for _, c := range []cut{cutBefore, cutAfter, cutAnswer} {
					t.Run(fmt.Sprintf("write %d: %s", at, c), func(t *testing.T) {
						t.Parallel()
						within(t, patience, open, func(t *testing.T, ctx context.Context, s *bench) { w.cutAt(t, ctx, s, at, c) })
					})
				}
			}
			if writes == 0 {
				t.Error("it writes nothing")
			}
		})
	}
}

// work is something of several writes. run may be called again by another process.
type work struct {
	name string
	run  func(context.Context, *scene, ledger.Backend) error
	done func(*testing.T, context.Context, *scene)
}

func (w work) cutAt(t *testing.T, ctx context.Context, s *bench, at int, c cut) {
	scene := s.scene(t, ctx)
	err := w.run(ctx, scene, &cutting{Backend: s.backend, at: at, cut: c})
	if (err == nil) != (c == cutAnswer) {
		t.Fatalf("the process that was cut says %v", err)
	}
	if err := ledger.CheckInvariants(ctx, s.store); err != nil {
		t.Errorf("what is left does not hold: %v", err)
	}
	if err := w.run(ctx, scene, s.backend); err != nil && !errors.Is(err, messages.SessionUsed) {
		t.Errorf("whoever comes next: %v", err)
	}
	w.done(t, ctx, scene)
	// Nothing is stuck: a whole further life goes through.
	must(s.RevokeGrant(ctx, messages.RevokeGrant{Principal: scene.Principal, By: "test"}))(t)
	s.retireAsked(t, ctx)
	next := s.born(t, ctx, "p")
	must(s.MintDescendant(ctx, s.mint(next, "z")))(t)
}

// cut is what happens to one write.
type cut string

const (
	cutBefore cut = "the process dies before it"
	cutAfter  cut = "the process dies after it"
	cutAnswer cut = "its answer is lost"
)

// cutting is a backend on which one write is cut. A dead process reaches nothing.
type cutting struct {
	ledger.Backend
	at  int
	cut cut

	mu    sync.Mutex
	sends int
	dead  bool
}

var errDead = errors.New("the process is dead")

func (c *cutting) Send(ctx context.Context, b ledger.Batch) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return 0, errDead
	}
	now := c.sends == c.at
	c.sends++
	c.dead = now && c.cut != cutAnswer
	if c.dead && c.cut == cutBefore {
		return 0, errDead
	}
	last, err := c.Backend.Send(ctx, b)
	switch {
	case c.dead:
		return 0, errDead
	case now:
		return 0, ledger.ErrUnknown
	}
	return last, err
}

func (c *cutting) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	if c.isDead() {
		return ledger.Row{}, false, errDead
	}
	return c.Backend.Get(ctx, key)
}

func (c *cutting) List(ctx context.Context, filter string) ([]string, error) {
	if c.isDead() {
		return nil, errDead
	}
	return c.Backend.List(ctx, filter)
}

func (c *cutting) Sync(ctx context.Context) error {
	if c.isDead() {
		return errDead
	}
	return c.Backend.Sync(ctx)
}

func (c *cutting) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// scene is p with credentials of each kind, and q with one from the same handle.
type scene struct {
	*bench
	living
	other     living
	at        messages.Instance
	operation string
}

func (s *bench) scene(t *testing.T, ctx context.Context) *scene {
	t.Helper()
	sc := &scene{bench: s, living: s.born(t, ctx, "p"), other: s.born(t, ctx, "q"), at: s.served(t, ctx, "svc"), operation: names.NewUID()}
	must(s.MintDescendant(ctx, s.mint(sc.living, "a", handle)))(t)
	must(s.MintDescendant(ctx, s.mint(sc.living, "b")))(t)
	must(s.MintDescendant(ctx, s.mint(sc.other, "a", handle)))(t)
	must(s.RedeemSession(ctx, s.session(sc.living, "s1", sc.at)))(t)
	return sc
}

// process is a holder and a writer of a process that reaches the ledger through b.
func (s *scene) process(ctx context.Context, b ledger.Backend) (*Holder, error) {
	return NewHolder(ctx, ledger.NewStore(b, ledger.DefaultPatience()), ledger.Options{Now: s.now})
}

func (s *scene) writer(b ledger.Backend) *ledger.Writer {
	return ledger.NewWriter(ledger.NewStore(b, ledger.DefaultPatience()), ledger.Options{Instance: s.instance, Now: s.now})
}

func runTakeover(ctx context.Context, s *scene, b ledger.Backend) error {
	holder, err := s.process(ctx, b)
	if err == nil {
		_, err = holder.Takeover(ctx, takeoverOf(s.living, s.operation))
	}
	return err
}

func takeoverDone(t *testing.T, ctx context.Context, s *scene) {
	head := s.head(t, ctx, s.living)
	if head.State != messages.HeadActive || head.Epoch != 2 || head.Generation != 2 || head.Root.ID != "" {
		t.Errorf("the head is %+v", head)
	}
	s.ended(t, ctx, s.operation)
}

// ended wants nothing active of p, nothing owed, and the operation done.
func (s *scene) ended(t *testing.T, ctx context.Context, operation string) {
	t.Helper()
	s.nothingIssued(t, ctx, s.living)
	if owed := must(s.Owed(ctx))(t); len(owed) != 0 {
		t.Errorf("owed are %+v", owed)
	}
	if op := must(s.Operation(ctx, messages.ReadOperation{ID: operation}))(t); op.Step != messages.StepDone || op.Outcome.Revoked != 3 {
		t.Errorf("the operation is %+v", op)
	}
	if state := s.states(t, ctx, s.other)["a"]; state != ledger.CredentialActive {
		t.Errorf("the other's credential is %s", state)
	}
}

func runRetirement(ctx context.Context, s *scene, b ledger.Backend) error {
	holder, err := s.process(ctx, b)
	if err == nil {
		_, err = holder.Retire(ctx, s.uid)
	}
	return err
}

func retirementDone(t *testing.T, ctx context.Context, s *scene) {
	found := must(s.Authority(ctx, messages.ReadAuthority{Principal: s.Principal, Head: true}))(t)
	if found.Head.State != messages.HeadRetired || found.Grant.State != messages.GrantRevoked {
		t.Errorf("he is %+v", found)
	}
	s.ended(t, ctx, ledger.OperationOf(s.uid))
}

func runSuperseding(ctx context.Context, s *scene, b ledger.Backend) error {
	holder, err := s.process(ctx, b)
	if err != nil {
		return err
	}
	err = holder.begin(ctx, takeoverOf(s.living, s.operation))
	// A process before this one may have retired him by now, or begun to.
	if err != nil && !errors.Is(err, messages.GateShut) && !errors.Is(err, messages.IncarnationEnded) {
		return err
	}
	_, err = holder.Retire(ctx, s.uid)
	return err
}

func runHandle(ctx context.Context, s *scene, b ledger.Backend) error {
	holder, err := s.process(ctx, b)
	if err == nil {
		err = holder.RevokeHandle(ctx, handle)
	}
	return err
}

func handleDone(t *testing.T, ctx context.Context, s *scene) {
	mine, theirs := s.states(t, ctx, s.living), s.states(t, ctx, s.other)
	if mine["a"] != ledger.CredentialRevoked || theirs["a"] != ledger.CredentialRevoked || mine["b"] != ledger.CredentialActive {
		t.Errorf("they are %v and %v", mine, theirs)
	}
	_, err := s.MintDescendant(ctx, s.mint(s.other, "late", handle))
	want(t, err, messages.HandleFrozen)
}

func runRedemption(ctx context.Context, s *scene, b ledger.Backend) error {
	_, err := s.writer(b).RedeemSession(ctx, s.session(s.living, "s2", s.at))
	return err
}

func redemptionDone(t *testing.T, ctx context.Context, s *scene) {
	if state := s.states(t, ctx, s.living)["s2-c"]; state != ledger.CredentialActive {
		t.Errorf("the caller's half is %q", state)
	}
	_, err := s.RedeemSession(ctx, s.session(s.living, "s2", s.at))
	want(t, err, messages.SessionUsed)
}

func runMint(ctx context.Context, s *scene, b ledger.Backend) error {
	_, err := s.writer(b).MintDescendant(ctx, s.mint(s.living, "c", handle, ledger.Handle{Issuer: "k2", ID: "h2"}))
	return err
}

func mintDone(t *testing.T, ctx context.Context, s *scene) {
	if state := s.states(t, ctx, s.living)["c"]; state != ledger.CredentialActive {
		t.Errorf("it is %q", state)
	}
}

func runAsking(ctx context.Context, s *scene, b ledger.Backend) error {
	asked, err := s.writer(b).AskRetirement(ctx, messages.AskRetirement{Principal: s.Principal, By: "test"})
	if err == nil && asked.Operation != ledger.OperationOf(s.uid) {
		err = fmt.Errorf("it answered %+v", asked)
	}
	return err
}

func askingDone(t *testing.T, ctx context.Context, s *scene) {
	if uids := must(ledger.Asked(ctx, s.store))(t); len(uids) != 1 || uids[0] != s.uid {
		t.Errorf("asked for: %v", uids)
	}
	if grant := must(s.Authority(ctx, messages.ReadAuthority{Principal: s.Principal}))(t).Grant; grant.State != messages.GrantRevoked {
		t.Errorf("the grant is %+v", grant)
	}
}

func runRoster(ctx context.Context, s *scene, b ledger.Backend) error {
	writer := s.writer(b)
	if _, err := writer.LearnServers(ctx, messages.LearnServers{Names: []string{"a", "b"}}); err != nil {
		return err
	}
	_, err := writer.ForgetServer(ctx, messages.ForgetServer{Name: "a"})
	return err
}

func rosterDone(t *testing.T, ctx context.Context, s *scene) {
	if known := must(s.Roster(ctx))(t).Names; len(known) != 1 || known[0] != "b" {
		t.Errorf("known: %v", known)
	}
}
