package space_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// host is a platform that assigns one instance at a time to a space.
type host struct {
	*world.World
	injector faults.Injector
	material *trust.Material

	mu       sync.Mutex
	assigned messages.Assignment
	there    bool
	err      error
	// changesAfter is how many more questions are answered before nothing is assigned; 0
	// for no change.
	changesAfter int
	// harms is done at each question, if it is set.
	harms func()
}

func newHost(t *testing.T, change ...func(*space.Config)) *host {
	t.Helper()
	h := &host{}
	h.World = world.Open(t, append(change, func(c *space.Config) { c.Platform = h }, h.injector.Into)...)
	h.material = natsdtest.Load(t, filepath.Dir(h.Config.SecretsDir), "main")
	return h
}

// Assignment is messages.Assignments.
func (h *host) Assignment(context.Context) (messages.Assignment, bool, error) {
	h.mu.Lock()
	harms := h.harms
	h.mu.Unlock()
	if harms != nil {
		harms()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	told := h.there
	if h.changesAfter > 0 {
		h.changesAfter--
		h.there = h.changesAfter > 0
	}
	return h.assigned, told, h.err
}

// silent has the platform fail to tell, or tell again.
func (h *host) silent(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// rows lists what stands in the ledger, with the revisions.
func (h *host) rows() []string {
	h.Helper()
	nc := natsdtest.Connect(h, h.Config.NATSURL, h.material, trust.CTRL, natsdtest.Everything())
	backend := stream.New(nc, stream.Config{Space: "main", Replicas: 1, Instance: instance}, stream.NewLanes(1))
	keys, err := backend.List(h.Context(), ">")
	h.must(err)
	var all []string
	for _, key := range keys {
		row, _, err := backend.Get(h.Context(), key)
		h.must(err)
		all = append(all, key+" "+strconv.FormatUint(row.Revision, 10))
	}
	return all
}

func (h *host) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// assign registers an instance of the platform's and assigns it.
func (h *host) assign(endpoint, instance string) messages.PlatformPlace {
	h.Helper()
	return h.assignAs(endpoint, instance, messages.Principal{Owner: h.Space.PlatformOwner(), Actor: "svc"})
}

func (h *host) assignAs(endpoint, instance string, principal messages.Principal) messages.PlatformPlace {
	h.Helper()
	_, err := h.Space.RegisterHostInstance(h.Context(), endpoint, instance, principal)
	h.must(err)
	h.mu.Lock()
	defer h.mu.Unlock()
	account := h.material.Account(trust.DATA)
	h.assigned = messages.Assignment{Account: account, Revision: h.assigned.Revision + 1, Endpoint: endpoint, Instance: instance}
	h.there, h.err = true, nil
	return messages.PlatformPlace{Space: "main", Account: account, Revision: h.assigned.Revision, Endpoint: endpoint, Instance: instance}
}

// serve runs a service as a process of an instance, over a connection that the callout
// lets in as that.
func (h *host) serve(endpoint, instance string, epoch uint64) {
	h.Helper()
	owner := h.Space.PlatformOwner()
	if status := h.Call("POST", "/v1/grants", map[string]any{"owner": owner, "actor": "svc", "scope": []string{},
		"publish": []string{}, "subscribe": []string{"svc.>"}, "serve": true}, nil); status != http.StatusCreated && status != http.StatusConflict {
		h.Fatalf("grant: %d", status)
	}
	issued, err := h.Space.IssueInstanceCredential(h.Context(), endpoint, instance, epoch, time.Minute)
	h.must(err)
	nc := h.With(world.Grant{Owner: owner, Actor: "svc"}, issued.Bearer.Reveal()).Connect()
	_, err = micro.AddService(nc, micro.Config{Name: endpoint, Version: "1.0.0",
		Metadata: map[string]string{"instance": instance, "epoch": strconv.FormatUint(epoch, 10)}})
	h.must(err)
	h.must(nc.Flush())
}

func (h *host) connect() *nats.Conn {
	h.Helper()
	return natsdtest.Connect(h, h.Config.NATSURL, h.material, trust.DATA, natsdtest.Everything())
}

// kept lists the connections for readiness: those that live, and all there were.
func (h *host) kept() (live, all []string) {
	for _, c := range h.Space.Connections() {
		if strings.HasPrefix(c.Label, "cotal:platform-readiness:main:") {
			all = append(all, c.Label)
			if !c.Ended {
				live = append(live, c.Label)
			}
		}
	}
	return live, all
}

const (
	billing = "cotal:platform-readiness:main:billing"
	mail    = "cotal:platform-readiness:main:mail"
)

var others = strings.Repeat("b", 26)

func TestReadiness(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	place := h.assign("billing", instance)
	if got, err := h.Space.Readiness(h.Context(), place); err != nil || got.Serving {
		t.Errorf("nobody serves yet: %+v, %v", got, err)
	}
	h.serve("billing", instance, 0)
	for range 3 {
		if got, err := h.Space.Readiness(h.Context(), place); err != nil || !got.Serving || got.Version != "1.0.0" {
			t.Errorf("it serves: %+v, %v", got, err)
		}
	}
	if live, all := h.kept(); !slices.Equal(live, []string{billing}) || len(all) != 1 {
		t.Errorf("connected as %v, of %v", live, all)
	}
	for _, how := range []string{"panic", "stop", "disconnect"} {
		_, _, err := h.Space.Kill(h.Context(), "readiness/billing-1", how)
		h.must(err)
		if got, err := h.Space.Readiness(h.Context(), place); err != nil || !got.Serving {
			t.Errorf("killed by %s: %+v, %v", how, got, err)
		}
	}
	// A restart registers: the process before serves no more.
	_, err := h.Space.RegisterHostInstance(h.Context(), "billing", instance, messages.Principal{Owner: h.Space.PlatformOwner(), Actor: "svc"})
	h.must(err)
	if got, err := h.Space.Readiness(h.Context(), place); err != nil || got.Serving || got.Epoch != 1 {
		t.Errorf("the former process serves: %+v, %v", got, err)
	}
	h.serve("billing", instance, 1)
	if got, err := h.Space.Readiness(h.Context(), place); err != nil || !got.Serving {
		t.Errorf("the new one serves: %+v, %v", got, err)
	}

	next := h.assign("mail", others)
	h.serve("mail", others, 0)
	if _, err := h.Space.Readiness(h.Context(), place); !errors.Is(err, messages.NotAssigned) {
		t.Errorf("what is not assigned any more: %v", err)
	}
	if got, err := h.Space.Readiness(h.Context(), next); err != nil || !got.Serving {
		t.Errorf("the next one: %+v, %v", got, err)
	}
	if live, _ := h.kept(); !slices.Equal(live, []string{mail}) {
		t.Errorf("connected as %v", live)
	}
	h.mu.Lock()
	h.err = errors.New("down")
	h.mu.Unlock()
	if _, err := h.Space.Readiness(h.Context(), next); !errors.Is(err, messages.PlatformAway) {
		t.Errorf("while the platform does not tell: %v", err)
	}
	h.must(h.Space.Close(h.Context()))
	if _, err := h.Space.Readiness(h.Context(), next); !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("closed: %v", err)
	}
}

func TestReadinessOfWhatIsNotThePlatforms(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	place := h.assign("billing", instance)
	foreign := messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "svc"}
	_, err := h.Space.RegisterHostInstance(h.Context(), "billing", others, foreign)
	h.must(err)
	h.mu.Lock()
	h.assigned.Instance = others
	h.mu.Unlock()
	place.Instance = others
	if _, err := h.Space.Readiness(h.Context(), place); !errors.Is(err, messages.InstanceForeign) {
		t.Errorf("somebody else's: %v", err)
	}
	h.mu.Lock()
	h.assigned.Endpoint = "never"
	h.mu.Unlock()
	place.Endpoint = "never"
	if _, err := h.Space.Readiness(h.Context(), place); !errors.Is(err, messages.InstanceNotFound) {
		t.Errorf("never registered: %v", err)
	}
	if _, all := h.kept(); len(all) != 0 {
		t.Errorf("what was refused has opened %v", all)
	}
}

// A read that is under way goes on when another instance is assigned, and its
// connection ends after it.
func TestAReadOutlastsItsAssignment(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	place := h.assign("billing", instance)
	slow := h.connect()
	asked, say := make(chan struct{}, 1), make(chan struct{})
	_, err := slow.Subscribe("$SRV.PING.billing", func(m *nats.Msg) {
		asked <- struct{}{}
		<-say
		_ = m.Respond([]byte(`{"id":"one","metadata":{"instance":"` + instance + `","epoch":"0"}}`))
	})
	h.must(err)
	for _, verb := range []string{"INFO", "STATS"} {
		_, err := slow.Subscribe("$SRV."+verb+".billing.one", func(m *nats.Msg) { _ = m.Respond([]byte(`{"version":"2.0.0"}`)) })
		h.must(err)
	}
	h.must(slow.Flush())
	read := make(chan messages.Readiness, 1)
	go func() {
		got, err := h.Space.Readiness(h.Context(), place)
		if err != nil {
			t.Errorf("the read that was under way: %v", err)
		}
		read <- got
	}()
	<-asked
	next := h.assign("mail", others)
	if got, err := h.Space.Readiness(h.Context(), next); err != nil || got.Serving {
		t.Errorf("the next one: %+v, %v", got, err)
	}
	if live, _ := h.kept(); !slices.Contains(live, billing) || !slices.Contains(live, mail) {
		t.Errorf("while the read goes on, connected as %v", live)
	}
	close(say)
	if got := <-read; !got.Serving || got.Version != "2.0.0" {
		t.Errorf("the read was cut: %+v", got)
	}
	if live, _ := h.kept(); !slices.Equal(live, []string{mail}) {
		t.Errorf("connected as %v", live)
	}
}

// One that could not be opened is not remembered, and one that fails to close is told.
func TestReadinessThatFailsToOpenOrClose(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	place := h.assign("billing", instance)
	h.serve("billing", instance, 0)
	struck := h.injector.Arm(faults.Fault{Actor: "readiness/billing-1", Harm: faults.Throw, Message: &supervisor.Open{}})
	if _, err := h.Space.Readiness(h.Context(), place); err == nil || !messages.Describe(err).Retryable {
		t.Errorf("it could not be opened: %v", err)
	}
	<-struck.Struck()
	if got, err := h.Space.Readiness(h.Context(), place); err != nil || !got.Serving {
		t.Errorf("after that: %+v, %v", got, err)
	}
	h.injector.Arm(faults.Fault{Actor: "readiness/billing-2", Harm: faults.Throw, Message: &supervisor.Close{}})
	next := h.assign("mail", others)
	if _, err := h.Space.Readiness(h.Context(), next); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if problems := h.Space.Status().Problems; len(problems) != 1 || !strings.Contains(problems[0], "billing") {
		t.Errorf("a close that failed is told as %q", problems)
	}
	if live, _ := h.kept(); !slices.Equal(live, []string{mail}) {
		t.Errorf("connected as %v", live)
	}
	if _, err := h.Space.Readiness(h.Context(), next); err != nil {
		t.Errorf("once more: %v", err)
	}
	if problems := h.Space.Status().Problems; len(problems) != 0 {
		t.Errorf("after it was tried again: %q", problems)
	}
}

func TestNobodyHostsThisSpace(t *testing.T) {
	t.Parallel()
	w := world.Open(t)
	if _, err := w.Space.Readiness(w.Context(), messages.PlatformPlace{}); !errors.Is(err, messages.PlatformAbsent) {
		t.Errorf("got %v", err)
	}
}
