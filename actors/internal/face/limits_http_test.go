package face

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// E031: too many failures, and only failures, are told to slow down.
func TestTooManyFailedProofs(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	for i := range FailuresAllowed + 2 {
		a := w.do("POST", w.url+"/exchange", `{"id_token":"x.y.z","actor":"laptop"}`)
		want := 401
		if i >= FailuresAllowed {
			want = 429
		}
		if a.status != want || want == 429 && a.header.Get("Retry-After") == "" {
			t.Fatalf("failure %d: got %d %s", i+1, a.status, a.body)
		}
		if a := w.do("POST", w.url+"/exchange", `{"actor":`); a.status != 400 {
			t.Fatalf("a malformed one: got %d", a.status)
		}
	}
	if a := w.exchange("user-1", "laptop"); a.status != 200 {
		t.Fatalf("a valid one: got %d %s", a.status, a.body)
	}
	if a := w.exchange("user-1", "phone"); a.status != 429 {
		t.Fatalf("one that is not granted: got %d %s", a.status, a.body)
	}
	if a := w.do("GET", w.url+"/v1/status", ""); a.status != 200 {
		t.Fatalf("the status: got %d", a.status)
	}
}

// E032: wrong capabilities have a budget of their own.
func TestTooManyWrongCapabilities(t *testing.T) {
	w := newWorld(t)
	for i := range FailuresAllowed + 5 {
		want := 401
		if i >= FailuresAllowed {
			want = 429
		}
		if a := w.do("POST", w.url+"/exchange", `{}`, header("Authorization", "Bearer x")); a.status != want {
			t.Fatalf("attempt %d: got %d", i+1, a.status)
		}
	}
	if a := w.do("POST", w.url+"/exchange", `{"id_token":"x.y.z","actor":"laptop"}`); a.status != 401 {
		t.Fatalf("a failed proof: got %d, its budget should be whole", a.status)
	}
	w.grant("user-1", "laptop")
	if a := w.exchange("user-1", "laptop"); a.status != 200 {
		t.Fatalf("the right capability: got %d %s", a.status, a.body)
	}
}

// Origin is refused before a byte of the body was sent.
func TestAPageIsRefusedBeforeItsBodyIsRead(t *testing.T) {
	w := newWorld(t)
	for name, lines := range map[string]string{
		"origin":     "Origin: https://evil.example\r\n",
		"capability": "Authorization: Bearer x\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		must(t, err)
		_, err = conn.Write([]byte("POST /exchange HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n" + lines + "\r\n"))
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
		first := make([]byte, 12)
		_, err = conn.Read(first)
		if err != nil || !strings.HasPrefix(string(first), "HTTP/1.1 40") {
			t.Errorf("%s: got %q, %v", name, first, err)
		}
		must(t, conn.Close())
	}
}

// blocked is an authority that holds every read until it is let go.
func blocked(w *world) (started chan struct{}, letGo func()) {
	started, gate := make(chan struct{}, 10*MaxWorking), make(chan struct{})
	w.rows.inFrontOf(&w.rows.beforeRead, func(ctx context.Context) error {
		started <- struct{}{}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return started, sync.OnceFunc(func() { close(gate) })
}

func TestOthersWaitWhileSomeAreWorkedOn(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	started, letGo := blocked(w)
	defer letGo()
	path := w.url + "/v1/grants/" + owner + "/laptop"
	answers := make(chan answer, MaxWorking+10)
	var asked sync.WaitGroup
	for range MaxWorking + 10 {
		asked.Go(func() {
			a, err := w.try(t.Context(), "GET", path, "")
			if err != nil {
				t.Error(err)
			}
			answers <- a
		})
	}
	for range MaxWorking {
		<-started
	}
	waitFor(t, func() bool { return len(w.loopback.turns.waiting) == 10 })
	if len(started) != 0 {
		t.Fatal("more are worked on than may be")
	}
	// The service still shows itself.
	for _, path := range []string{"/v1/status", "/v1/tree", "/livez", "/readyz", "/metrics", "/jwks"} {
		if a := w.do("GET", w.url+path, ""); a.status != 200 {
			t.Errorf("%s: got %d", path, a.status)
		}
	}
	letGo()
	asked.Wait()
	for range MaxWorking + 10 {
		if a := <-answers; a.status != 200 {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
}

func TestWhoWaitsTooLongIsToldWeAreBusy(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	started, letGo := blocked(w)
	defer letGo()
	w.loopback.turns = newTurns(1, 1, time.Millisecond)
	path := w.url + "/v1/grants/" + owner + "/laptop"
	first := make(chan int, 1)
	go func() {
		a, _ := w.try(context.Background(), "GET", path, "")
		first <- a.status
	}()
	<-started
	a := w.do("GET", path, "")
	if a.status != 503 || a.reason() != messages.Busy.Reason || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	letGo()
	if status := <-first; status != 200 {
		t.Errorf("the first got %d", status)
	}
}

func TestAPanicIsContainedAndCounted(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	w.rows.inFrontOf(&w.rows.beforeRead, func(context.Context) error { panic(errors.New("on purpose")) })
	a := w.do("GET", w.url+"/v1/grants/"+owner+"/laptop", "")
	if a.status != 500 || a.reason() != "internal" || strings.Contains(a.body, "purpose") {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	w.rows.inFrontOf(&w.rows.beforeRead, nil)
	page := w.do("GET", w.url+"/metrics", "").body
	for _, line := range []string{
		`authplane_http_panics_total{face="loopback"} 1`,
		`authplane_http_requests_total{code="internal",face="loopback",route="/v1/grants/{owner}/{actor}",status="500"} 1`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	if strings.Contains(page, owner) {
		t.Error("a label was chosen by a client")
	}
	if !strings.Contains(w.logged(), "on purpose") || !strings.Contains(w.logged(), a.header.Get("X-Request-Id")) {
		t.Error("the log does not tell of the panic")
	}
	if a := w.do("GET", w.url+"/v1/grants/"+owner+"/laptop", ""); a.status != 200 {
		t.Errorf("afterwards: %d", a.status)
	}
	if w.loopback.InFlight() != 0 && len(w.loopback.turns.working) != 0 {
		t.Error("the panic kept its turn")
	}
}

func TestDrainLetsAcceptedRequestsFinish(t *testing.T) {
	w := newWorld(t)
	owner := w.grant("user-1", "laptop")
	started, letGo := blocked(w)
	defer letGo()
	path := w.url + "/v1/grants/" + owner + "/laptop"
	first := make(chan answer, 1)
	go func() {
		a, _ := w.try(context.Background(), "GET", path, "")
		first <- a
	}()
	<-started
	drained := make(chan error, 1)
	go func() { drained <- w.loopback.Drain(t.Context()) }()
	waitFor(t, func() bool { return w.loopback.draining.Err() != nil })
	if a := w.do("GET", path, ""); a.status != 503 || a.reason() != "service.closing" {
		t.Errorf("a new one: %d %s", a.status, a.body)
	}
	select {
	case err := <-drained:
		t.Fatalf("drained (%v) while a request is in work", err)
	default:
	}
	letGo()
	if a := <-first; a.status != http.StatusOK {
		t.Errorf("the accepted one: %d %s", a.status, a.body)
	}
	must(t, <-drained)
}

func TestCloseMakesThoseInWorkGiveUp(t *testing.T) {
	w := newWorld(t)
	w.grant("user-1", "laptop")
	entered := make(chan struct{})
	w.rows.inFrontOf(&w.rows.beforeEnrol, func(ctx context.Context) error {
		close(entered)
		<-ctx.Done() // bound to the face as well as to its own time
		return ctx.Err()
	})
	got := make(chan answer, 1)
	body := `{"id_token":"` + w.idToken("user-1", time.Hour) + `","actor":"laptop"}`
	go func() {
		a, _ := w.try(context.Background(), "POST", w.url+"/exchange", body)
		got <- a
	}()
	<-entered
	must(t, w.loopback.Close(t.Context()))
	if a := <-got; a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", a.status, a.body)
	}
}
