package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// footed is what every machine of these tests gets.
var footed = messages.Footprint{
	Consumers: []messages.FootprintConsumer{
		{Stream: "DM", Name: "dm-{uid}", Filters: []string{"dm.{owner}.{actor}.>"}, MaxDeliver: 5},
		{Stream: "DM", Name: "all-{uid}", Filters: []string{"dm.all", "dm.{actor}"}, Ack: "none", Deliver: "new"},
	},
	Rows: []messages.FootprintRow{{Bucket: "acl_{space}", Key: "{owner}.{actor}.{uid}", Value: `{"actor":"{actor}"}`}},
}

// yard is a space whose machines have a footprint, and the places that takes.
type yard struct {
	*world.World
	js   jetstream.JetStream
	boss world.Person
}

func openYard(t *testing.T, change ...func(*space.Config)) *yard {
	y := &yard{World: world.New(t, append([]func(*space.Config){func(c *space.Config) {
		c.Footprint, c.Public = footed, &space.PublicConfig{Listen: "127.0.0.1:0"}
	}}, change...)...)}
	js, err := jetstream.New(y.Owner("data"))
	y.try(err)
	y.js = js
	_, err = js.CreateStream(y.Context(), jetstream.StreamConfig{Name: "DM", Subjects: []string{"dm.>"}})
	y.try(err)
	y.bucket()
	y.Start()
	y.boss = y.Person("boss", "laptop", "demo.>", "dm.>")
	return y
}

func (y *yard) bucket() {
	_, err := y.js.CreateKeyValue(y.Context(), jetstream.KeyValueConfig{Bucket: "acl_main"})
	y.try(err)
}

func (y *yard) try(err error) {
	y.Helper()
	if err != nil {
		y.Fatal(err)
	}
}

// machine is a body that enrols an actor under the boss.
func (y *yard) machine(actor, secret string) map[string]any {
	return map[string]any{"owner": y.boss.Grant.Owner, "actor": actor, "token_hash": hashOf(secret), "publish": []string{"demo.a"},
		"parent": y.boss.Grant.Owner + "." + y.boss.Grant.Actor}
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// enrolled is what the face says of a machine.
type enrolled struct {
	Owner       string `json:"owner"`
	Actor       string `json:"actor"`
	UID         string `json:"uid"`
	Step        string `json:"step"`
	Again       bool   `json:"again"`
	ExchangeURL string `json:"exchange_url"`
	Error       struct {
		Code    messages.Code `json:"code"`
		Reason  string        `json:"reason"`
		Message string        `json:"message"`
	} `json:"error"`
}

func (y *yard) enroll(body map[string]any) (answer enrolled, status int) {
	y.Helper()
	status = y.Call("POST", "/v1/enroll", body, &answer)
	return answer, status
}

// parts lists what is there of an incarnation.
func (y *yard) parts(uid string) (names []string) {
	y.Helper()
	stream, err := y.js.Stream(y.Context(), "DM")
	y.try(err)
	for name := range stream.ConsumerNames(y.Context()).Name() {
		if strings.Contains(name, uid) {
			names = append(names, name)
		}
	}
	kv, err := y.js.KeyValue(y.Context(), "acl_main")
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return names
	}
	y.try(err)
	keys, err := kv.Keys(y.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		y.try(err)
	}
	for _, key := range keys {
		if strings.Contains(key, uid) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// journal lists the keys and steps of what was ever provisioned.
func (y *yard) journal() []string {
	y.Helper()
	js, err := jetstream.New(y.Owner("ctrl"))
	y.try(err)
	stream, err := js.Stream(y.Context(), "KV_cotal_authority_main")
	y.try(err)
	info, err := stream.Info(y.Context(), jetstream.WithSubjectFilter("$KV.cotal_authority_main.prov.>"))
	y.try(err)
	var lines []string
	for subject := range info.State.Subjects {
		row, err := stream.GetLastMsgForSubject(y.Context(), subject)
		y.try(err)
		var p struct{ Actor, UID, Step string }
		y.try(json.Unmarshal(row.Data, &p))
		lines = append(lines, fmt.Sprintf("%s %s %s", p.Actor, p.UID, p.Step))
	}
	slices.Sort(lines)
	return lines
}

// shortLived lists the connections of provisioning that have not ended.
func (y *yard) shortLived() (open []string) {
	for _, c := range y.Space.Connections() {
		if !c.Ended && strings.Contains(c.Label, "provisioner") {
			open = append(open, c.Label)
		}
	}
	return open
}

// TestEnrolmentRefusals are the requests that are refused before anything is written.
func TestEnrolmentRefusals(t *testing.T) {
	t.Parallel()
	y := openYard(t)
	many := slices.Repeat([]string{"demo.a"}, 65)
	for name, c := range map[string]struct {
		field string
		value any
		want  int
	}{
		"a plain token":         {"token_hash", "secret", 400},
		"no digest":             {"token_hash", nil, 400},
		"the token beside it":   {"token", "secret", 400},
		"an unknown field":      {"capabilities", []string{}, 400},
		"a lifecycle uid":       {"uid", strings.Repeat("a", 26), 400},
		"another lifecycle uid": {"lifecycle_uid", strings.Repeat("a", 26), 400},
		"a kind":                {"kind", "interactive", 400},
		"65 entries":            {"publish", many, 400},
		"65 other entries":      {"subscribe", many, 400},
		"a long label":          {"label", strings.Repeat("x", 257), 400},
		"a bad subject":         {"subscribe", []string{"a..b"}, 400},
		"an unknown role":       {"role", "nobody", 400},
		"more than its parent":  {"publish", []string{"other.>"}, 403},
		"a parent who is none":  {"parent", y.boss.Grant.Owner + ".nobody", 403},
	} {
		body := y.machine("bot", "one")
		if body[c.field] = c.value; c.value == nil {
			delete(body, c.field)
		}
		if answer, status := y.enroll(body); status != c.want || answer.Error.Code == "" {
			t.Errorf("%s: %d %+v", name, status, answer)
		}
	}
	if written := y.journal(); len(written) != 0 {
		t.Errorf("written is %v", written)
	}
	if status := y.Call("GET", "/v1/grants/"+y.boss.Grant.Owner+"/bot", nil, nil); status != http.StatusNotFound {
		t.Errorf("the grant: %d", status)
	}
}

// TestEnrolment is the life of a machine with a footprint, twice.
func TestEnrolment(t *testing.T) {
	t.Parallel()
	y := openYard(t)
	first, status := y.enroll(y.machine("bot", "one"))
	if status != http.StatusCreated || first.Step != "ready" || first.ExchangeURL != y.Space.PublicURL()+"/exchange" || len(y.parts(first.UID)) != 3 {
		t.Fatalf("%d %+v with %v", status, first, y.parts(first.UID))
	}
	if open := y.shortLived(); len(open) != 0 {
		t.Errorf("open are %v", open)
	}
	again, status := y.enroll(y.machine("bot", "one"))
	if status != http.StatusOK || again.UID != first.UID || !again.Again {
		t.Errorf("the same again: %d %+v", status, again)
	}
	var lost enrolled
	if status := y.Call("GET", "/v1/enroll/"+hashOf("one"), nil, &lost); status != http.StatusOK || lost.UID != first.UID {
		t.Errorf("by its digest: %d %+v", status, lost)
	}
	if status := y.Call("GET", "/v1/enroll/"+hashOf("two"), nil, nil); status != http.StatusNotFound {
		t.Errorf("by another digest: %d", status)
	}
	if other, status := y.enroll(y.machine("bot", "two")); status != http.StatusConflict {
		t.Errorf("another secret: %d %+v", status, other)
	}
	// Somebody without the whole of it in the ledger, so it has a life that must be ended.
	if token, status := y.exchangeMachine("bot", "one"); status != http.StatusOK || token == "" {
		t.Fatalf("its exchange: %d", status)
	}
	retire := map[string]any{"owner": first.Owner, "actor": first.Actor, "uid": first.UID}
	for range 2 {
		if status := y.Call("POST", "/v1/retire?wait=30", retire, nil); status != http.StatusOK {
			t.Fatalf("retire: %d", status)
		}
	}
	next, status := y.enroll(y.machine("bot", "one"))
	if status != http.StatusCreated || next.UID == first.UID {
		t.Fatalf("the next one: %d %+v", status, next)
	}
	y.Poll("the first one's parts to be gone", func() bool { return len(y.parts(first.UID)) == 0 })
	if status := y.Call("POST", "/v1/retire?wait=30", retire, nil); status != http.StatusOK {
		t.Errorf("retired again: %d", status)
	}
	if left := y.parts(next.UID); len(left) != 3 {
		t.Errorf("of the next one are left %v", left)
	}
	// One that was never used has nothing to retire, and is removed all the same.
	if status := y.Call("DELETE", "/v1/grants/"+next.Owner+"/bot", nil, nil); status != http.StatusOK {
		t.Errorf("revoke: %d", status)
	}
	y.Poll("the next one's parts to be gone", func() bool { return len(y.parts(next.UID)) == 0 })
	y.Poll("the journal to say so", func() bool {
		return slices.IndexFunc(y.journal(), func(line string) bool { return !strings.HasSuffix(line, " done") }) < 0
	})
}

func (y *yard) exchangeMachine(actor, secret string) (token string, status int) {
	y.Helper()
	var answer struct {
		Token string `json:"token"`
	}
	status = y.Call("POST", "/exchange", map[string]any{"owner": y.boss.Grant.Owner, "actor": actor, "actor_token": secret}, &answer)
	return answer.Token, status
}

// TestEnrolmentThatCannotBe fails in the account of the principals: of a new grant nothing
// is left; a grant that stood stays.
func TestEnrolmentThatCannotBe(t *testing.T) {
	t.Parallel()
	y := openYard(t)
	y.try(y.js.DeleteKeyValue(y.Context(), "acl_main"))
	failed, status := y.enroll(y.machine("bot", "one"))
	if status != http.StatusPreconditionFailed || failed.Error.Reason != "footprint.refused" || !strings.Contains(failed.Error.Message, "acl_main") {
		t.Errorf("without its bucket: %d %+v", status, failed)
	}
	var grant struct {
		UID   string `json:"uid"`
		State string `json:"state"`
	}
	if status := y.Call("GET", "/v1/grants/"+y.boss.Grant.Owner+"/bot", nil, &grant); status != http.StatusOK || grant.State != "revoked" || len(y.parts(grant.UID)) != 0 {
		t.Errorf("left are %d %+v and %v", status, grant, y.parts(grant.UID))
	}
	if journal := y.journal(); len(journal) != 1 || !strings.HasSuffix(journal[0], " done") {
		t.Errorf("the journal: %v", journal)
	}
	if open := y.shortLived(); len(open) != 0 {
		t.Errorf("open are %v", open)
	}
	y.bucket()
	// A foreign consumer under the name of a part cannot be told before its uid is known, so
	// the bucket is what comes and goes here.
	made, status := y.enroll(y.machine("bot", "one"))
	if status != http.StatusCreated || made.UID == grant.UID {
		t.Fatalf("once it is there: %d %+v", status, made)
	}
	// Its parent narrows: the same question is refused, and nothing of it is changed.
	path := "/v1/grants/" + y.boss.Grant.Owner + "/laptop"
	if status := y.Call("PUT", path, map[string]any{"revision": 1, "scope": []string{}, "publish": []string{"demo.b"}, "subscribe": []string{}, "serve": false}, nil); status != http.StatusOK {
		t.Fatalf("narrow the parent: %d", status)
	}
	if answer, status := y.enroll(y.machine("bot", "one")); status != http.StatusForbidden {
		t.Errorf("under a narrower parent: %d %+v", status, answer)
	}
	if left := y.parts(made.UID); len(left) != 3 {
		t.Errorf("left are %v", left)
	}
}

// A machine that an operator grants gets its footprint too, with a secret that is made for
// it, and its next incarnation another one.
func TestGrantedMachinesHaveAFootprint(t *testing.T) {
	t.Parallel()
	y := openYard(t)
	body := map[string]any{"owner": y.boss.Grant.Owner, "actor": "bot", "kind": "managed", "publish": []string{"demo.a"}, "parent": y.boss.Grant.Owner + ".laptop"}
	var grant world.Grant
	if status := y.Call("POST", "/v1/grants", body, &grant); status != http.StatusCreated || grant.ActorToken == "" || len(y.parts(grant.UID)) != 3 {
		t.Fatalf("%d %+v with %v", status, grant.UID, y.parts(grant.UID))
	}
	if _, status := y.exchangeMachine("bot", grant.ActorToken); status != http.StatusOK {
		t.Errorf("its exchange: %d", status)
	}
	body["new_incarnation"] = true
	var next world.Grant
	if status := y.Call("POST", "/v1/grants?wait=30", body, &next); status != http.StatusCreated || next.UID == grant.UID || len(y.parts(next.UID)) != 3 {
		t.Errorf("anew: %d %s", status, next.UID)
	}
	y.Poll("the first one's parts to be gone", func() bool { return len(y.parts(grant.UID)) == 0 })
	if parts := y.parts(y.Grant("carol", "laptop", "demo.>").UID); len(parts) != 0 {
		t.Errorf("a person has %v", parts)
	}
}

// Two processes of a space enrol one name at once: one grant, and a conflict or, for the
// same secret, the same incarnation. One of them has no public face, and enrols nobody.
func TestEnrolmentsOfOneNameAtOnce(t *testing.T) {
	t.Parallel()
	y := openYard(t)
	beside := y.Beside()
	answers := make(chan struct {
		uid string
		err error
	}, 8) // one of each
	for i := range 8 {
		handle := []*space.Handle{y.Space, beside.Space}[i%2]
		secret := []string{"one", "two"}[i/2%2]
		go func() {
			m, err := handle.Enroll(context.Background(), messages.EnrolMachine{TokenHash: hashOf(secret),
				Principal: messages.Principal{Owner: y.boss.Grant.Owner, Actor: "bot"}, Allowance: messages.Allowance{Publish: []string{"demo.a"}},
				Parent: messages.Principal{Owner: y.boss.Grant.Owner, Actor: "laptop"}})
			answers <- struct {
				uid string
				err error
			}{m.Grant.UID, err}
		}()
	}
	uids := map[string]int{}
	for range 8 {
		a := <-answers
		if a.err == nil {
			uids[a.uid]++
		} else if !errors.Is(a.err, messages.GrantStands) {
			t.Errorf("refused with %v", a.err)
		}
	}
	if len(uids) != 1 {
		t.Fatalf("granted are %v", uids)
	}
	for uid, times := range uids {
		if times != 4 || len(y.parts(uid)) != 3 {
			t.Errorf("%d got it, with %v", times, y.parts(uid))
		}
	}
	alone := *y.World
	alone.Config.StateDir, alone.Config.Public = filepath.Join(t.TempDir(), "state"), nil
	alone.Start()
	_, err := alone.Space.Enroll(t.Context(), messages.EnrolMachine{TokenHash: hashOf("x"), Principal: messages.Principal{Owner: y.boss.Grant.Owner, Actor: "other"}})
	if !errors.Is(err, messages.ExchangeAbsent) {
		t.Errorf("without a public face: %v", err)
	}
	_, err = alone.Space.Enroll(t.Context(), messages.EnrolMachine{TokenHash: "x", Principal: messages.Principal{Owner: y.boss.Grant.Owner, Actor: "other"}})
	if !errors.Is(err, messages.Malformed) {
		t.Errorf("what is malformed, without a public face: %v", err)
	}
}

// A machine pulls from the consumer that was made for it, acknowledges, and reads its row;
// it can do so with nobody else's, and people cannot at all.
func TestAMachineUsesItsFootprint(t *testing.T) {
	t.Parallel()
	y := openYard(t)
	robot, status := y.enroll(y.machine("robot", "one"))
	other, otherStatus := y.enroll(y.machine("other", "two"))
	if status != http.StatusCreated || otherStatus != http.StatusCreated {
		t.Fatalf("enrolled: %d, %d", status, otherStatus)
	}
	token, status := y.exchangeMachine("robot", "one")
	if status != http.StatusOK {
		t.Fatalf("exchange: %d", status)
	}
	nc := y.With(world.Grant{Owner: robot.Owner, Actor: "robot"}, token).Connect()
	js, err := jetstream.New(nc)
	y.try(err)
	consumer, err := js.Consumer(y.Context(), "DM", "dm-"+robot.UID)
	y.try(err)
	_, err = y.js.Publish(y.Context(), "dm."+robot.Owner+".robot.x", []byte("hello"))
	y.try(err)
	m, err := consumer.Next(jetstream.FetchMaxWait(world.Patience))
	if err != nil || string(m.Data()) != "hello" {
		t.Fatalf("pulled %v, %v", m, err)
	}
	y.try(m.DoubleAck(y.Context()))
	row := "$JS.API.DIRECT.GET.KV_acl_main.$KV.acl_main." + robot.Owner + ".robot."
	if got, err := nc.Request(row+robot.UID, nil, world.Patience); err != nil || string(got.Data) != `{"actor":"robot"}` {
		t.Errorf("its row: %+v, %v", got, err)
	}
	boss := y.boss.Connect()
	for what, ask := range map[string]struct {
		nc      *nats.Conn
		subject string
	}{
		"another's consumer":  {nc, "$JS.API.CONSUMER.MSG.NEXT.DM.dm-" + other.UID},
		"to look at it":       {nc, "$JS.API.CONSUMER.INFO.DM.dm-" + other.UID},
		"another's row":       {nc, "$JS.API.DIRECT.GET.KV_acl_main.$KV.acl_main." + robot.Owner + ".other." + other.UID},
		"the stream":          {nc, "$JS.API.STREAM.INFO.DM"},
		"a person, the same":  {boss, "$JS.API.CONSUMER.MSG.NEXT.DM.dm-" + robot.UID},
		"a person, its row":   {boss, row + robot.UID},
		"to make one":         {nc, "$JS.API.CONSUMER.CREATE.DM.dm-" + robot.UID},
		"to be rid of it":     {nc, "$JS.API.CONSUMER.DELETE.DM.dm-" + robot.UID},
		"to write its row":    {nc, "$KV.acl_main." + robot.Owner + ".robot." + robot.UID},
		"another's deliverer": {nc, "$JS.ACK.DM.dm-" + other.UID + ".1.1.1.1.0"},
	} {
		y.try(ask.nc.Publish(ask.subject, nil))
		y.try(ask.nc.Flush())
		if err := ask.nc.LastError(); err == nil || !strings.Contains(err.Error(), ask.subject) {
			t.Errorf("%s: it may, or %v", what, err)
		}
	}
}
