package faults_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/provisioning"
	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/faults"
	"github.com/cotal-ai/authplane/test/world"
)

// TestProvisions does harm on the way of an enrolment and of its removal.
func TestProvisions(t *testing.T) {
	t.Parallel()
	for _, r := range faults.Provisions() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			provision(t, r)
		})
	}
}

// yard is a space whose machines need a consumer and a row.
type yard struct {
	*world.World
	js     jetstream.JetStream
	parent messages.Principal
}

func openYard(t *testing.T, inject *faults.Injector) *yard {
	y := &yard{World: world.New(t, inject.Into, func(c *space.Config) {
		c.Public = &space.PublicConfig{Listen: "127.0.0.1:0"}
		c.Footprint = messages.Footprint{
			Consumers: []messages.FootprintConsumer{{Stream: "DM", Name: "dm-{uid}"}},
			Rows:      []messages.FootprintRow{{Bucket: "acl", Key: "x.{uid}", Value: "{actor}"}},
		}
	})}
	var err error
	if y.js, err = jetstream.New(y.Owner("data")); err != nil {
		t.Fatal(err)
	}
	if _, err := y.js.CreateStream(y.Context(), jetstream.StreamConfig{Name: "DM", Subjects: []string{"dm.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := y.js.CreateKeyValue(y.Context(), jetstream.KeyValueConfig{Bucket: "acl"}); err != nil {
		t.Fatal(err)
	}
	y.Start()
	awaitReady(y.World)
	boss := y.Grant("boss", "laptop", "demo.>")
	y.parent = messages.Principal{Owner: boss.Owner, Actor: boss.Actor}
	return y
}

func (y *yard) enroll() (messages.MachineEnrolled, error) {
	sum := sha256.Sum256([]byte("secret"))
	return y.Space.Enroll(y.Context(), messages.EnrolMachine{TokenHash: hex.EncodeToString(sum[:]), Parent: y.parent,
		Principal: messages.Principal{Owner: y.parent.Owner, Actor: "bot"}, Allowance: messages.Allowance{Publish: []string{"demo.a"}}})
}

// parts counts what there is of an incarnation, or of all for none.
func (y *yard) parts(uid string) (n int) {
	y.Helper()
	stream, err := y.js.Stream(y.Context(), "DM")
	if err != nil {
		y.Fatal(err)
	}
	for name := range stream.ConsumerNames(y.Context()).Name() {
		if strings.Contains(name, uid) {
			n++
		}
	}
	kv, err := y.js.KeyValue(y.Context(), "acl")
	if err != nil {
		y.Fatal(err)
	}
	keys, err := kv.Keys(y.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		y.Fatal(err)
	}
	for _, key := range keys {
		if strings.Contains(key, uid) {
			n++
		}
	}
	return n
}

func provision(t *testing.T, r faults.ProvisionRow) {
	inject := &faults.Injector{}
	y := openYard(t, inject)
	armed := inject.Arm(r.Fault)
	defer armed.Disarm()
	told := make(chan error, 1)
	go func() {
		_, err := y.enroll()
		told <- err
	}()
	switch {
	case r.Leaving:
		await(t, armed.Struck(), "the write")
		leavesYard(t, y, armed, told)
	case r.Kill != "":
		await(t, armed.Struck(), "the write")
		if _, _, err := y.Space.Kill(t.Context(), faults.FirstProvisioning, string(r.Kill)); err != nil {
			t.Fatal(err)
		}
		armed.Disarm()
	}
	if !r.Leaving {
		if err := <-told; err != nil && !messages.Describe(err).Retryable {
			t.Errorf("the caller is told %v", err)
		}
	}
	// The same question brings it to its end, over whatever is undone or finished meanwhile.
	var made messages.MachineEnrolled
	y.Poll("the same question to be answered", func() (is bool) {
		var err error
		if made, err = y.enroll(); err != nil && !messages.Describe(err).Retryable {
			t.Fatalf("asked again: %v", err)
		}
		return err == nil
	})
	if is := y.parts(made.Grant.UID); is != 2 || y.parts("") != 2 {
		t.Errorf("there are %d parts of it, and %d of all", is, y.parts(""))
	}
	if status := y.Call("DELETE", "/v1/grants/"+made.Grant.Principal.Owner+"/bot", nil, nil); status != http.StatusOK {
		t.Errorf("revoke: %d", status)
	}
	if !r.Leaving { // where somebody of a former process was making it, that waits until his connection has run out
		y.Poll("everything to be removed", func() bool { return y.parts("") == 0 })
	}
	await(t, armed.Struck(), "the message") // else the row says nothing
	y.Poll("the actors and their connections to be gone", func() bool {
		for _, a := range y.Space.Tree() {
			if strings.HasPrefix(a.Path, "operations/") {
				return false
			}
		}
		for _, c := range y.Space.Connections() {
			if !c.Ended && strings.Contains(c.Label, "provisioner") {
				return false
			}
		}
		return true
	})
	y.Poll("the space to be as it was", func() bool {
		state := y.Space.Status()
		return state.State == messages.SpaceReady && len(state.Problems) == 0
	})
}

// leavesYard closes the space over an enrolment and starts it again: with nobody asking, it
// ends as a machine with all its parts, or as none.
func leavesYard(t *testing.T, y *yard, armed *faults.Armed, told <-chan error) {
	ctx, cancel := context.WithTimeout(context.Background(), world.Patience)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- y.Space.Close(ctx) }()
	y.Await("the space to close", func() bool { return y.Space.Status().State != messages.SpaceReady })
	armed.Disarm()
	<-told
	if err := <-closed; err != nil {
		if err := y.Space.Close(ctx); err != nil {
			t.Fatalf("the close after it says %v", err)
		}
	}
	y.Start()
	awaitReady(y.World)
	y.Poll("it to be whole, or nothing", func() bool {
		var grant struct{ UID, State string }
		status := y.Call("GET", "/v1/grants/"+y.parent.Owner+"/bot", nil, &grant)
		live := status == http.StatusOK && grant.State == "live"
		return live && y.parts(grant.UID) == 2 || !live && y.parts("") == 0
	})
}

// What a process leaves half-made whoever holds the plane after it brings to its end, and
// a journal that cannot be read keeps him from none of it.
func TestTheNextHolderSettles(t *testing.T) {
	t.Parallel()
	inject := &faults.Injector{}
	y := openYard(t, inject)
	plain := *y.World
	plain.Config.Middleware = nil
	beside := plain.Beside()
	const poisoned = "prov.u_aaaaaaaaaaaaaaaaaaaaaaaaaa.a.a.a"
	ctrl := y.Owner("ctrl")
	if _, err := ctrl.Request("$KV.cotal_authority_main."+poisoned, []byte("{}"), world.Patience); err != nil {
		t.Fatal(err)
	}
	armed := inject.Arm(faults.Fault{Actor: "plane/writer", Harm: faults.Hold, Message: provisioning.JournalWrite{}, Nth: 2})
	defer armed.Disarm()
	told := make(chan error, 1)
	go func() {
		_, err := y.enroll()
		told <- err
	}()
	await(t, armed.Struck(), "the write")
	ctx, cancel := context.WithTimeout(context.Background(), world.Patience)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- y.Space.Close(ctx) }()
	y.Await("the space to close", func() bool { return y.Space.Status().State != messages.SpaceReady })
	armed.Disarm()
	<-told
	if err := <-closed; err != nil {
		t.Errorf("the close says %v", err)
	}
	next := &yard{World: beside, js: y.js, parent: y.parent}
	next.Poll("it to be whole", func() bool {
		var grant struct{ UID, State string }
		status := next.Call("GET", "/v1/grants/"+y.parent.Owner+"/bot", nil, &grant)
		return status == http.StatusOK && grant.State == "live" && next.parts(grant.UID) == 2
	})
	next.Poll("the other to be shown", func() bool {
		problems := next.Space.Status().Problems
		return len(problems) == 1 && strings.Contains(problems[0], poisoned)
	})
}
