package face

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

func TestAPersonsExchange(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	a := w.exchange("user-1", "laptop")
	if a.status != 200 || a.text("owner") != owner || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	bearer, err := w.keyring.Verify(a.text("token"), time.Now())
	must(t, err)
	if bearer.Principal.String() != owner+".laptop" || fmt.Sprint(bearer.Scope) != "[read]" || bearer.CredentialID == "" || bearer.UID == "" {
		t.Fatalf("the bearer says %+v", bearer)
	}
	expires, err := time.Parse("2006-01-02T15:04:05Z", a.text("expires_at"))
	if err != nil || !expires.Equal(bearer.Expires) || bearer.Expires.Sub(bearer.IssuedAt) != MaxLife {
		t.Fatalf("expires %q, the bearer from %v to %v, %v", a.text("expires_at"), bearer.IssuedAt, bearer.Expires, err)
	}
	again, err := w.keyring.Verify(w.exchange("user-1", "laptop").text("token"), time.Now())
	if err != nil || again.CredentialID != bearer.CredentialID || again.UID != bearer.UID {
		t.Fatalf("a second exchange says %+v, %v", again, err)
	}
}

func TestABearerEndsWithItsProof(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	_, secret := w.machine("user-2", "robot")
	owner := strings.TrimSpace(w.grant("user-2", "other"))
	for _, c := range []struct {
		name, body string
		life       time.Duration
	}{
		{"as asked", `{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop","ttl_seconds":60}`, 60 * time.Second},
		{"with the proof", `{"id_token":"` + w.idToken("user-1", 100*time.Second) + `","actor":"laptop","ttl_seconds":900}`, 100 * time.Second},
		{"a machine's, unasked", `{"owner":"` + owner + `","actor":"robot","actor_token":"` + secret + `"}`, MaxMachineLife},
		{"a machine's, cut", `{"owner":"` + owner + `","actor":"robot","actor_token":"` + secret + `","ttl_seconds":900}`, MaxMachineLife},
		{"a machine's, shorter", `{"owner":"` + owner + `","actor":"robot","actor_token":"` + secret + `","ttl_seconds":1}`, time.Second},
	} {
		a := w.do("POST", w.url+"/exchange", c.body)
		bearer, err := w.keyring.Verify(a.text("token"), time.Now())
		if err != nil {
			t.Fatalf("%s: %d %s, %v", c.name, a.status, a.body, err)
		}
		// The clock may tick between the proof and the bearer.
		if life := bearer.Expires.Sub(bearer.IssuedAt); life > c.life || life < c.life-time.Second || life <= 0 {
			t.Errorf("%s: lives %v, want %v", c.name, life, c.life)
		}
	}
}

// E023 to E029: what is refused for its shape leaves no trace, and mostly is not
// even looked up.
func TestBadInputIsRefusedBeforeAnything(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	token := w.idToken("user-1", time.Hour)
	w.rows.mu.Lock()
	w.rows.reads = 0
	w.rows.mu.Unlock()
	for _, rest := range []string{
		`"actor":"a.b"`, `"actor":"a-b"`, `"actor":"*"`, `"actor":">"`, `"actor":""`, `"actor":"` + strings.Repeat("a", 10_000) + `"`, `"actor":null`,
		`"actor":"laptop","ttl_seconds":-1`, `"actor":"laptop","ttl_seconds":0`, `"actor":"laptop","ttl_seconds":901`,
		`"actor":"laptop","ttl_seconds":NaN`, `"actor":"laptop","ttl_seconds":"60"`, `"actor":"laptop","ttl_seconds":60.5`,
		`"actor":"laptop","ttl_seconds":6e1`, `"actor":"laptop","ttl_seconds":null`,
		`"actor":"laptop","view":"admin"`, `"actor":"laptop","view":"root"`, `"actor":"laptop","profile":"Root"`, `"actor":"laptop","scope":["admin"]`,
		`"actor":"laptop","owner":"u_7ddcihobiesn4x46pu2mxn2qee"`, `"actor":"laptop","actor_token":"x"`,
	} {
		if a := w.do("POST", w.url+"/exchange", `{"id_token":"`+token+`",`+rest+`}`); a.status != 400 {
			t.Errorf("%.60s: got %d %s", rest, a.status, a.body)
		}
	}
	if heads, uids := w.rows.written(t, "head.*.*"), w.rows.written(t, "uid.*"); heads+uids != 0 || w.rows.reads != 0 {
		t.Fatalf("%d heads, %d uids, %d reads after nothing but bad input", heads, uids, w.rows.reads)
	}
	w.exchange("user-1", "laptop") // the same count sees a good one
	if w.rows.written(t, "head.*.*") != 1 || w.rows.reads == 0 {
		t.Fatal("a good exchange left nothing")
	}
}

// Whatever is wrong with a machine's proof is refused alike.
func TestAMachinesRefusalIsUniform(t *testing.T) {
	w := newWorld(t)
	owner, secret := w.machine("user-1", "robot")
	if a := w.do("POST", w.url+"/exchange", `{"owner":"`+owner+`","actor":"robot","actor_token":"`+secret+`"}`); a.status != 200 {
		t.Fatalf("the right secret: %d %s", a.status, a.body)
	}
	want := ""
	for _, c := range []struct{ owner, actor, secret string }{
		{owner, "robot", secret + "a"}, {owner, "robot", strings.ToUpper(secret)}, {owner, "boss_robot", secret}, {owner, "nobody", secret},
		{"u_" + strings.Repeat("a", 26), "robot", secret}, {owner, "robot", strings.Repeat("x", 20_000)},
	} {
		a := w.do("POST", w.url+"/exchange", `{"owner":"`+c.owner+`","actor":"`+c.actor+`","actor_token":"`+c.secret+`"}`)
		got := fmt.Sprint(a.status, strings.ReplaceAll(a.body, a.header.Get("X-Request-Id"), "<id>"))
		if want == "" {
			want = got
		}
		if a.status != 401 || got != want {
			t.Errorf("%s.%s: got %s, others got %s", c.owner, c.actor, got, want)
		}
	}
	if w.rows.written(t, "head.*.*") != 1 {
		t.Error("a refused proof left a head")
	}
}

func TestAMachineFollowsItsChain(t *testing.T) {
	w := newWorld(t)
	owner, secret := w.machine("user-1", "robot")
	body := `{"owner":"` + owner + `","actor":"robot","actor_token":"` + secret + `"}`
	narrower := w.do("PUT", w.url+"/v1/grants/"+owner+"/boss_robot", `{"revision":1,"publish":["demo.b"]}`)
	if a := w.do("POST", w.url+"/exchange", body); narrower.status != 200 || a.status != 403 || a.reason() != "grant.exceeded" {
		t.Fatalf("below a narrowed parent: %d %s", a.status, a.body)
	}
	if a := w.do("DELETE", w.url+"/v1/grants/"+owner+"/robot", ""); a.status != 200 {
		t.Fatalf("revoke: %d %s", a.status, a.body)
	}
	if a := w.do("POST", w.url+"/exchange", body); a.status != 403 || a.reason() != "grant.absent" {
		t.Fatalf("revoked, with the right secret: %d %s", a.status, a.body)
	}
	if w.rows.written(t, "head.*.*") != 0 {
		t.Error("a refused machine has a head")
	}
}

// E033: without the broker nothing is signed, and the client may come again.
func TestAnAuthorityThatIsAway(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	for name, hook := range map[string]*func(context.Context) error{"read": &w.rows.beforeRead, "enrol": &w.rows.beforeEnrol} {
		for _, fault := range []error{messages.BrokerAway, messages.Unproved, messages.ActorAway, messages.OutcomeUnknown, context.DeadlineExceeded} {
			w.rows.inFrontOf(hook, func(context.Context) error { return fault })
			a := w.exchange("user-1", "laptop")
			if a.status != 503 || a.header.Get("Retry-After") == "" || a.text("token") != "" {
				t.Errorf("%s, %v: got %d %s", name, fault, a.status, a.body)
			}
		}
		w.rows.inFrontOf(hook, nil)
	}
	if a := w.exchange("user-1", "laptop"); a.status != 200 {
		t.Fatalf("afterwards: %d %s", a.status, a.body)
	}
}

// E034: a client that hangs up does not tear the durable step, and the next
// exchange finds what that made.
func TestAClientThatHangsUp(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	arrived, gone := make(chan struct{}), make(chan struct{})
	w.rows.inFrontOf(&w.rows.beforeEnrol, func(ctx context.Context) error {
		close(arrived)
		<-gone
		return ctx.Err()
	})
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	body := `{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop"}`
	go func() {
		_, err := w.try(ctx, "POST", w.url+"/exchange", body)
		ended <- err
	}()
	<-arrived
	hangUp()
	if err := <-ended; err == nil {
		t.Fatal("the client got an answer")
	}
	close(gone)
	waitFor(t, func() bool { return w.loopback.InFlight() == 0 })
	if w.rows.written(t, "head.*.*") != 1 {
		t.Fatal("the enrolment that had begun did not complete")
	}
	w.rows.inFrontOf(&w.rows.beforeEnrol, nil)
	bearer, err := w.keyring.Verify(w.exchange("user-1", "laptop").text("token"), time.Now())
	must(t, err)
	row, _, err := w.rows.store.Get(t.Context(), ledger.HeadKey(bearer.Principal))
	must(t, err)
	if head, err := ledger.DecodeHead(row); err != nil || head.Root.ID != bearer.CredentialID {
		t.Fatalf("the bearer names %s, the head says %+v, %v", bearer.CredentialID, head, err)
	}
}

// One that hangs up before the durable step leaves nothing.
func TestAClientThatHangsUpEarly(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	arrived := make(chan struct{})
	w.rows.inFrontOf(&w.rows.beforeRead, func(ctx context.Context) error {
		close(arrived)
		<-ctx.Done()
		return nil // as a reader that answers all the same
	})
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan struct{})
	body := `{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop"}`
	go func() {
		defer close(ended)
		_, _ = w.try(ctx, "POST", w.url+"/exchange", body)
	}()
	<-arrived
	hangUp()
	<-ended
	waitFor(t, func() bool { return w.loopback.InFlight() == 0 })
	if w.rows.written(t, "head.*.*") != 0 {
		t.Fatal("an exchange nobody waits for was enrolled")
	}
}

func TestAStormOfFirstExchanges(t *testing.T) {
	w := newWorld(t)
	const many = storm
	bodies := make([]string, many)
	for i := range bodies {
		// Every fourth shares its principal with three others.
		subject := fmt.Sprint("user-", i/4)
		if i%4 == 0 {
			w.grant(subject, "laptop")
		}
		bodies[i] = `{"id_token":"` + w.idToken(subject, time.Hour) + `","actor":"laptop"}`
	}
	var wg sync.WaitGroup
	credentials := make([]string, many)
	for i, body := range bodies {
		wg.Go(func() {
			a, err := w.try(t.Context(), "POST", w.url+"/exchange", body)
			if err != nil || a.status != http.StatusOK {
				t.Errorf("exchange %d: %d %s, %v", i, a.status, a.body, err)
				return
			}
			bearer, err := w.keyring.Verify(a.text("token"), time.Now())
			if err != nil {
				t.Error(err)
			}
			credentials[i] = bearer.CredentialID
		})
	}
	wg.Wait()
	for i := range credentials {
		if credentials[i] != credentials[i/4*4] {
			t.Errorf("exchange %d got another credential than its siblings", i)
		}
	}
	if heads := w.rows.written(t, "head.*.*"); heads != many/4 {
		t.Errorf("%d heads of %d principals", heads, many/4)
	}
}

// Nothing secret is in the log or the metrics, whatever was sent.
func TestNothingSecretIsLogged(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	owner, secret := w.machine("user-2", "robot")
	token := w.idToken("user-1", time.Hour)
	issued := w.do("POST", w.url+"/exchange", `{"id_token":"`+token+`","actor":"laptop"}`).text("token")
	w.do("POST", w.url+"/exchange", `{"id_token":"`+token[:len(token)-4]+`AAAA","actor":"laptop"}`)
	w.do("POST", w.url+"/exchange", `{"owner":"`+owner+`","actor":"robot","actor_token":"`+secret+`"}`)
	w.do("POST", w.url+"/exchange", `{"owner":"`+owner+`","actor":"robot","actor_token":"`+secret+`x"}`)
	w.do("POST", w.url+"/exchange", `{"`+secret+`":1}`)
	w.rows.inFrontOf(&w.rows.beforeRead, func(context.Context) error { panic(messages.NewSecret(secret)) })
	if a := w.exchange("user-1", "laptop"); a.status != 500 {
		t.Fatalf("a panic: %d", a.status)
	}
	page := w.do("GET", w.url+"/metrics", "").body
	for name, text := range map[string]string{"log": w.logged(), "metrics": page} {
		if text == "" {
			t.Errorf("the %s is empty", name)
		}
		for what, value := range map[string]string{"id token": token[len(token)-60 : len(token)-4], "secret": secret, "capability": w.capability.Reveal(), "bearer": issued} {
			if strings.Contains(text, value) {
				t.Errorf("the %s shows the %s", name, what)
			}
		}
	}
}
