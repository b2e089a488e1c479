package footprint_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	owner = "u_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	lives = time.Minute
)

var brisk = ledger.Patience{First: time.Microsecond, Most: time.Millisecond, Budget: time.Second}

func principal(actor string) messages.Principal {
	return messages.Principal{Owner: owner, Actor: actor}
}

func hash(secret string) string { return ledger.HashSecret(messages.NewSecret(secret)) }

// template has a part of each kind twice.
var template = messages.Footprint{
	Consumers: []messages.FootprintConsumer{
		{Stream: "DM", Name: "dm-{uid}", Filters: []string{"dm.{owner}.{actor}.>"}},
		{Stream: "DLV", Name: "dlv-{actor}-{uid}", Ack: "none"},
	},
	Rows: []messages.FootprintRow{
		{Bucket: "acl_{space}", Key: "{owner}.{actor}.{uid}", Value: `{"uid":"{uid}"}`},
		{Bucket: "acl_{space}", Key: "by.{uid}", Value: "{actor}"},
	},
}

// thing is what stands in the account under a name.
type thing struct {
	mark string
	spec string
}

// stage is what processes share: a ledger, and an account of principals.
type stage struct {
	backend *memory.Backend
	mu      sync.Mutex
	clock   time.Time
	things  map[string]thing
	gone    map[string]bool // places that are not there
}

func newStage() *stage {
	return &stage{backend: memory.New(), clock: time.UnixMilli(1_700_000_000_000), things: map[string]thing{}, gone: map[string]bool{}}
}

func (s *stage) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

func (s *stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

// breaks takes a place away, or brings it back.
func (s *stage) breaks(place string, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[place] = gone
}

func (s *stage) all() map[string]thing {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := map[string]thing{}
	for name, t := range s.things {
		copied[name] = t
	}
	return copied
}

// cut is what happens to one durable write of a process.
type cut string

const (
	noCut     cut = ""
	cutBefore cut = "the process dies before it"
	cutAfter  cut = "the process dies after it"
	cutAnswer cut = "its answer is lost"
)

var errDead = errors.New("the process is dead")

// process reaches the stage until it is cut.
type process struct {
	*stage
	*footprint.Sagas
	ledger *ledger.Writer

	mu     sync.Mutex
	at     int
	cut    cut
	writes int
	dead   bool
}

// start begins a process that is cut at one of its writes; -1 for none.
func (s *stage) start(at int, c cut) *process { return s.startWith(template, at, c) }

func (s *stage) startWith(f messages.Footprint, at int, c cut) *process {
	p := &process{stage: s, at: at, cut: c}
	p.ledger = ledger.NewWriter(ledger.NewStore(reach{s.backend, p}, brisk), ledger.Options{Instance: names.NewUID(), Now: s.now})
	p.Sagas = footprint.New(footprint.Config{Space: "main", Footprint: f, Journal: journal{p}, Sites: sites{p}, Lives: lives, Now: s.now})
	return p
}

// write does one durable write, unless it is cut; lost says that its answer is.
func (p *process) write(do func() error) (lost bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false, errDead
	}
	now := p.writes == p.at
	p.writes++
	p.dead = now && (p.cut == cutBefore || p.cut == cutAfter)
	if now && p.cut == cutBefore {
		return false, errDead
	}
	err = do()
	if now && p.cut == cutAfter {
		return false, errDead
	}
	return now && p.cut == cutAnswer, err
}

func (p *process) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	return nil
}

// reach is the ledger as a process reaches it.
type reach struct {
	*memory.Backend
	p *process
}

func (r reach) Send(ctx context.Context, b ledger.Batch) (last uint64, err error) {
	lost, err := r.p.write(func() (err error) { last, err = r.Backend.Send(ctx, b); return err })
	if lost {
		err = ledger.ErrUnknown
	}
	return last, err
}

func (r reach) Get(ctx context.Context, key string) (ledger.Row, bool, error) {
	if err := r.p.alive(); err != nil {
		return ledger.Row{}, false, err
	}
	return r.Backend.Get(ctx, key)
}

func (r reach) List(ctx context.Context, filter string) ([]string, error) {
	if err := r.p.alive(); err != nil {
		return nil, err
	}
	return r.Backend.List(ctx, filter)
}

// journal is footprint.Journal on a ledger that is there.
type journal struct{ p *process }

func (j journal) Keys(ctx context.Context, filter string) ([]string, error) {
	all, err := j.p.ledger.ListProvisions(ctx, ledger.ListProvisions{Filter: filter})
	return all.Keys, err
}

func (j journal) Read(ctx context.Context, key string) (footprint.Entry, bool, error) {
	read, err := j.p.ledger.ReadProvision(ctx, ledger.ReadProvision{Key: key})
	return footprint.Entry{Provision: read.Provision, Revision: read.Revision}, read.Found, err
}

func (j journal) Write(ctx context.Context, e footprint.Entry) (footprint.Entry, error) {
	return written(e, func(w ledger.WriteProvision) (ledger.ProvisionWritten, error) {
		return j.p.ledger.WriteProvision(ctx, w)
	})
}

func (j journal) Grant(ctx context.Context, e footprint.Entry, ask messages.EnrolMachine) (footprint.Entry, error) {
	return written(e, func(w ledger.WriteProvision) (ledger.ProvisionWritten, error) {
		return j.p.ledger.GrantProvision(ctx, ledger.GrantProvision{WriteProvision: w, Ask: ask})
	})
}

func written(e footprint.Entry, write func(ledger.WriteProvision) (ledger.ProvisionWritten, error)) (footprint.Entry, error) {
	answer, err := write(ledger.WriteProvision{Provision: e.Provision, Revision: e.Revision, Witness: names.NewUID()})
	if err == nil && answer.Moved {
		err = footprint.ErrMoved
	}
	if err == nil {
		e.Revision = answer.Revision
	}
	return e, err
}

func (j journal) Standing(ctx context.Context, p messages.Principal) (messages.Authority, error) {
	return ledger.NewReader(reach{j.p.backend, j.p}, nil).Authority(ctx, messages.ReadAuthority{Principal: p, Head: true})
}

func (j journal) End(ctx context.Context, p messages.Principal, uid string) error {
	_, err := j.p.ledger.AskRetirement(ctx, messages.AskRetirement{Principal: p, UID: uid, By: "x"})
	if errors.Is(err, messages.IncarnationEnded) || errors.Is(err, messages.GrantNotFound) {
		err = nil
	}
	return err
}

// sites is the account as a process reaches it.
type sites struct{ p *process }

func (s sites) Provision(ctx context.Context, p messages.Provision, do func(context.Context, footprint.Site) error) (bool, error) {
	if err := s.p.alive(); err != nil {
		return false, err
	}
	return true, do(ctx, site{s.p, p.UID})
}

func (s sites) Deprovision(ctx context.Context, p messages.Provision, do func(context.Context, footprint.Site) error) (bool, error) {
	return s.Provision(ctx, p, do)
}

type site struct {
	p   *process
	uid string
}

func consumerName(c messages.FootprintConsumer) string { return "consumer/" + c.Stream + "/" + c.Name }
func rowName(r messages.FootprintRow) string           { return "row/" + r.Bucket + "/" + r.Key }
func specOf(c messages.FootprintConsumer) string       { return fmt.Sprint(c.Filters, c.Ack) }

func (s site) look(place, name, spec string) (footprint.Presence, error) {
	if err := s.p.alive(); err != nil {
		return 0, err
	}
	s.p.stage.mu.Lock()
	defer s.p.stage.mu.Unlock()
	there, found := s.p.things[name]
	switch {
	case s.p.gone[place]:
		return 0, messages.FootprintRefused.Because("%s is not there", place)
	case !found:
		return footprint.Absent, nil
	case there.mark == s.uid:
		return footprint.Ours, nil
	case there.spec == spec:
		return footprint.Alike, nil
	}
	return footprint.Other, nil
}

func (s site) make(place, name, spec string) error {
	lost, err := s.p.write(func() error {
		s.p.stage.mu.Lock()
		defer s.p.stage.mu.Unlock()
		there, found := s.p.things[name]
		switch {
		case s.p.gone[place]:
			return messages.FootprintRefused.Because("%s is not there", place)
		case found && there.mark != s.uid:
			return footprint.ErrOther
		}
		s.p.things[name] = thing{s.uid, spec}
		return nil
	})
	if lost {
		err = messages.BrokerAway
	}
	return err
}

func (s site) remove(name string, made bool) error {
	lost, err := s.p.write(func() error {
		s.p.stage.mu.Lock()
		defer s.p.stage.mu.Unlock()
		if made || s.p.things[name].mark == s.uid {
			delete(s.p.things, name)
		}
		return nil
	})
	if lost {
		err = messages.BrokerAway
	}
	return err
}

func (s site) Consumer(_ context.Context, c messages.FootprintConsumer) (footprint.Presence, error) {
	return s.look(c.Stream, consumerName(c), specOf(c))
}

func (s site) Row(_ context.Context, r messages.FootprintRow) (footprint.Presence, error) {
	return s.look(r.Bucket, rowName(r), r.Value)
}

func (s site) MakeConsumer(_ context.Context, c messages.FootprintConsumer) error {
	return s.make(c.Stream, consumerName(c), specOf(c))
}

func (s site) MakeRow(_ context.Context, r messages.FootprintRow) error {
	return s.make(r.Bucket, rowName(r), r.Value)
}

func (s site) RemoveConsumer(_ context.Context, c messages.FootprintConsumer, made bool) error {
	return s.remove(consumerName(c), made)
}

func (s site) RemoveRow(_ context.Context, r messages.FootprintRow, made bool) error {
	return s.remove(rowName(r), made)
}

// parent grants somebody under whom machines are enrolled.
func (s *stage) parent(ctx context.Context, publish ...string) error {
	_, err := s.start(-1, noCut).ledger.PutGrant(ctx, messages.PutGrant{Principal: principal("boss"), Kind: messages.Interactive,
		Allowance: messages.Allowance{Publish: publish}, By: "x"})
	return err
}

func ask(actor, secret string) messages.EnrolMachine {
	return messages.EnrolMachine{Principal: principal(actor), TokenHash: hash(secret), Allowance: messages.Allowance{Publish: []string{"demo.a"}},
		Parent: principal("boss"), By: "x"}
}

// retire ends whatever somebody asks to be ended, as the holder of the plane does.
func (s *stage) retire(ctx context.Context) error {
	store := ledger.NewStore(s.backend, brisk)
	uids, err := ledger.Asked(ctx, store)
	if err != nil || len(uids) == 0 {
		return err
	}
	holder, err := contract.NewHolder(ctx, store, ledger.Options{Now: s.now})
	for _, uid := range uids {
		if err == nil {
			_, err = holder.Retire(ctx, uid)
		}
	}
	return err
}

// settle lets a fresh process settle whatever there is, when everybody's time is over.
func (s *stage) settle(ctx context.Context) error {
	s.pass(2 * lives)
	p := s.start(-1, noCut)
	keys, err := journal{p}.Keys(ctx, ledger.AllProvisions)
	for range 2 { // the second time for what waited for a retirement
		for _, key := range keys {
			_, failed := p.Settle(ctx, key)
			if failed != nil && !messages.Describe(failed).Retryable {
				err = errors.Join(err, failed)
			}
		}
		err = errors.Join(err, s.retire(ctx))
	}
	return err
}

// check says what cannot be: a thing that nobody can name, a footprint that is not
// whole where it should be, one that is there and should not be.
func (s *stage) check(ctx context.Context, settled bool) error {
	p := s.start(-1, noCut)
	keys, err := journal{p}.Keys(ctx, ledger.AllProvisions)
	broken := []error{err, ledger.CheckInvariants(ctx, s.backend)}
	named := map[string]bool{}
	things := s.all()
	for _, key := range keys {
		e, _, err := journal{p}.Read(ctx, key)
		if err != nil {
			return err
		}
		a, err := journal{p}.Standing(ctx, e.Principal)
		if err != nil {
			return err
		}
		live := a.HasGrant && a.Grant.UID == e.UID && a.Grant.State == messages.GrantLive
		parts := map[string]messages.Ownership{}
		for i, c := range e.Footprint.Consumers {
			parts[consumerName(c)] = e.Consumers[i]
		}
		for i, r := range e.Footprint.Rows {
			parts[rowName(r)] = e.Rows[i]
		}
		for name, owned := range parts {
			there, is := things[name]
			ours := is && there.mark == e.UID
			named[name] = named[name] || ours && owned != messages.OwnershipOpen && e.Step != messages.ProvisionDone
			if (e.Step == messages.ProvisionReady || e.Step == messages.ProvisionProvisioned) && !is {
				broken = append(broken, fmt.Errorf("%s is %s without %s", e.UID, e.Step, name))
			}
		}
		if settled && (live && e.Step != messages.ProvisionReady || !live && e.Step != messages.ProvisionDone) {
			broken = append(broken, fmt.Errorf("%s of %s is left %s, its grant is live: %v", e.UID, e.Principal, e.Step, live))
		}
	}
	for name, there := range things {
		if there.mark != "somebody" && !named[name] {
			broken = append(broken, fmt.Errorf("nobody can name %s of %s", name, there.mark))
		}
	}
	return errors.Join(broken...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
