package exchange

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

func TestBothFacesExchange(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop")
	for _, url := range []string{s.address.URL(), s.public.URL()} {
		status, body, err := s.ask("POST", url+"/exchange", s.proof("user-1", "laptop"))
		if err != nil || status != 200 || !strings.Contains(body, `"token":"ey`) {
			t.Errorf("%s: %d %s, %v", url, status, body, err)
		}
	}
	_, body, err := s.ask("GET", s.public.URL()+"/.well-known/cotal-mesh", "")
	if err != nil || !strings.Contains(body, `"exchange_url":"`+s.public.URL()+`/exchange"`) {
		t.Errorf("the public face says %s, %v", body, err)
	}
}

// However it dies, it comes back where it was, and nothing of the dead life answers.
func TestItComesBackOnTheAddressItHad(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop")
	loopback, public := s.address.URL(), s.public.URL()
	for i, how := range []string{"panic", "stop", "panic"} {
		events := s.tree.Events(256)
		status, body, err := s.ask("POST", loopback+"/v1/debug/kill", `{"actor":"exchange","how":"`+how+`"}`)
		if want := fmt.Sprintf(`{"generation":%d,"path":"exchange"}`, i+1); err != nil || status != 202 || strings.TrimSpace(body) != want {
			t.Fatalf("%s: %d %s, %v", how, status, body, err)
		}
		happens(t, events, opened("exchange", uint64(i+2)))
		events.Close()
		if s.address.URL() != loopback || s.public.URL() != public {
			t.Fatalf("%s: moved from %s and %s to %s and %s", how, loopback, public, s.address.URL(), s.public.URL())
		}
		s.client.CloseIdleConnections()
		for _, url := range []string{loopback, public} {
			if status, body, err := s.ask("POST", url+"/exchange", s.proof("user-1", "laptop")); err != nil || status != 200 {
				t.Fatalf("after %s: %d %s, %v", how, status, body, err)
			}
		}
	}
	if status, body, err := s.ask("POST", loopback+"/v1/debug/kill", `{"actor":"exchange","how":"disconnect"}`); err != nil || status != 409 {
		t.Errorf("disconnect: %d %s, %v", status, body, err)
	}
}

// A read that meets a restarting reader is repeated within its own time.
func TestReadsOutliveTheReader(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop")
	proof := s.proof("user-1", "laptop")
	for generation := uint64(1); generation <= 3; generation++ {
		arrived := make(chan struct{})
		s.before(func(ctx context.Context, m any) {
			if _, read := m.(messages.ReadAuthority); read {
				s.before(nil)
				close(arrived)
				<-ctx.Done() // the reader dies with the question in hand
			}
		})
		answers := make(chan string, 1)
		go func() {
			status, body, err := s.ask("POST", s.address.URL()+"/exchange", proof)
			answers <- fmt.Sprint(status, body, err)
		}()
		<-arrived
		_, err := s.tree.Kill("plane/reader", supervisor.Panic)
		must(t, err)
		if answer := <-answers; !strings.HasPrefix(answer, "200") {
			t.Errorf("life %d: %s", generation, answer)
		}
	}
}

// A grant whose writer dies over it is not asked for again: nobody can tell whether
// it was made, and the client is told so.
func TestDoubtfulWritesAreAskedForOnce(t *testing.T) {
	s := start(t, nil)
	events := s.tree.Events(256)
	defer events.Close()
	asked := 0
	s.before(func(ctx context.Context, m any) {
		if _, put := m.(messages.PutGrant); put {
			asked++
			s.before(nil)
			if _, err := s.tree.Kill("plane/writer", supervisor.Panic); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
		}
	})
	grant := `{"sub":"user-1","actor":"laptop","scope":[],"publish":["demo.>"],"subscribe":["demo.>"]}`
	status, body, err := s.ask("POST", s.address.URL()+"/v1/grants", grant)
	if err != nil || status != 503 || !strings.Contains(body, messages.OutcomeUnknown.Reason) {
		t.Errorf("got %d %s, %v", status, body, err)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	happens(t, events, opened("plane/writer", 2))
	if status, body, err = s.ask("POST", s.address.URL()+"/v1/grants", grant); err != nil || status != 201 {
		t.Errorf("afterwards: %d %s, %v", status, body, err)
	}
}

// Enrolling may be done twice, so that an exchange outlives the writer it met.
func TestAnExchangeOutlivesTheWriter(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop")
	s.before(func(ctx context.Context, m any) {
		if _, enrol := m.(messages.Enrol); enrol {
			s.before(nil)
			if _, err := s.tree.Kill("plane/writer", supervisor.Panic); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
		}
	})
	if status, _, err := s.ask("POST", s.address.URL()+"/exchange", s.proof("user-1", "laptop")); err != nil || status != 200 {
		t.Errorf("got %d, %v", status, err)
	}
}

func TestAStormOfFirstExchangesThroughTheTree(t *testing.T) {
	s := start(t, nil)
	const many = storm
	bodies := make([]string, many)
	for i := range bodies {
		subject := fmt.Sprint("user-", i/10)
		if i%10 == 0 {
			s.grant(subject, "laptop")
		}
		bodies[i] = s.proof(subject, "laptop")
	}
	var wg sync.WaitGroup
	for i, body := range bodies {
		url := s.address.URL()
		if i%2 == 0 {
			url = s.public.URL()
		}
		wg.Go(func() {
			if status, answer, err := s.ask("POST", url+"/exchange", body); err != nil || status != 200 {
				t.Errorf("exchange %d: %d %s, %v", i, status, answer, err)
			}
		})
	}
	wg.Wait()
}

// follow opens an event stream and returns what ends when it ends.
func (s *space) follow() <-chan struct{} {
	s.t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), "GET", s.address.URL()+"/v1/events", nil)
	must(s.t, err)
	request.Header.Set("Authorization", "Bearer "+s.capability.Reveal())
	response, err := s.client.Do(request)
	must(s.t, err)
	lines, ended := bufio.NewScanner(response.Body), make(chan struct{})
	if !lines.Scan() {
		s.t.Fatal("the stream did not begin")
	}
	go func() {
		defer close(ended)
		defer response.Body.Close()
		for lines.Scan() { // until the stream ends
		}
	}()
	return ended
}

func TestAnOrderlyClose(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop")
	streamEnded := s.follow()
	arrived, letGo := make(chan struct{}), make(chan struct{})
	s.before(func(_ context.Context, m any) {
		if _, read := m.(messages.ReadAuthority); read {
			close(arrived)
			<-letGo
		}
	})
	url, proof := s.address.URL(), s.proof("user-1", "laptop")
	accepted := make(chan string, 1)
	go func() {
		status, body, err := s.ask("POST", url+"/exchange", proof)
		accepted <- fmt.Sprint(status, body, err)
	}()
	<-arrived
	events := s.tree.Events(256)
	defer events.Close()
	closed := make(chan error, 1)
	go func() { closed <- s.tree.Close(context.Background()) }()
	happens(t, events, func(e supervisor.Event) bool {
		d, is := e.(supervisor.Draining)
		return is && d.Path == "exchange"
	})
	<-streamEnded // at once, though a request is still in work
	s.client.CloseIdleConnections()
	if conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		must(t, conn.Close())
		t.Error("a new connection is accepted")
	}
	close(letGo)
	if answer := <-accepted; !strings.HasPrefix(answer, "200") {
		t.Errorf("the accepted request: %s", answer)
	}
	must(t, <-closed)
}

// Neither idle connections, nor such that never asked anything, hold up a close.
func TestIdleConnectionsDoNotHoldUpAClose(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop") // leaves a kept connection
	silent, err := net.Dial("tcp", strings.TrimPrefix(s.address.URL(), "http://"))
	must(t, err)
	defer silent.Close()
	half, err := net.Dial("tcp", strings.TrimPrefix(s.public.URL(), "http://"))
	must(t, err)
	defer half.Close()
	_, err = half.Write([]byte("POST /exchange HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"))
	must(t, err)
	if status, _, err := s.ask("GET", s.public.URL()+"/livez", ""); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := s.tree.Close(ctx); err != nil {
		t.Fatalf("the half request held up the close: %v", err)
	}
}

// What takes longer than it may is cut off, and told so.
func TestAHungRequestIsCutOff(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop")
	arrived, letGo := make(chan struct{}), make(chan struct{})
	defer close(letGo)
	s.before(func(ctx context.Context, m any) {
		if _, read := m.(messages.ReadAuthority); read {
			close(arrived)
			select {
			case <-letGo:
			case <-ctx.Done():
			}
		}
	})
	url, proof := s.address.URL(), s.proof("user-1", "laptop")
	answers := make(chan string, 1)
	go func() {
		status, body, err := s.ask("POST", url+"/exchange", proof)
		answers <- fmt.Sprint(status, body, err)
	}()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	must(t, s.tree.Close(ctx))
	if answer := <-answers; !strings.HasPrefix(answer, "503") {
		t.Errorf("the hung request: %s", answer)
	}
}

func TestAnAddressThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	address := NewAddress(taken.Addr().String())
	system := newSystem()
	defer system.Shutdown()
	config := Config{Address: address, Public: &PublicConfig{Address: NewAddress("")}}
	_, err = supervisor.Start(t.Context(), system, supervisor.Spec{Name: "space", Group: &supervisor.Group{Children: []supervisor.Spec{Spec(config)}}})
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Fatalf("got %v", err)
	}
	if address.URL() != "" {
		t.Errorf("an address that was never bound has the URL %s", address.URL())
	}
}

func TestThePublicFaceOverTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // for its certificate alone
	defer certified.Close()
	s := start(t, func(c *Config) {
		c.Public.TLS = &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	})
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	s.grant("user-1", "laptop")
	plain := s.client
	s.client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	if status, body, err := s.ask("POST", s.public.URL()+"/exchange", s.proof("user-1", "laptop")); err != nil || status != 200 || !strings.HasPrefix(s.public.URL(), "https://") {
		t.Errorf("%s: %d %s, %v", s.public.URL(), status, body, err)
	}
	s.client = plain
}

func TestWhatAnAskMeansToAClient(t *testing.T) {
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(messages.ServiceClosing)
	late, done := context.WithTimeout(t.Context(), 0)
	defer done()
	s := start(t, nil)
	away, _ := s.tree.Ref("plane")
	plane := authority{reader: away, writer: away}
	for _, c := range []struct {
		name string
		ctx  context.Context
		want error
	}{
		{"nobody waits any more", gone, messages.ServiceClosing},
		{"no such actor", t.Context(), messages.ActorAway},
		{"too late for anybody to be asked", late, messages.ActorAway},
	} {
		if _, err := plane.Enrol(c.ctx, messages.Enrol{}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := plane.Read(gone, messages.ReadAuthority{}); !errors.Is(err, messages.ServiceClosing) {
		t.Errorf("a read nobody waits for: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", "127.0.0.1:0", ""} {
		a := NewAddress(listen)
		listener, err := a.bind(t.Context(), "http")
		if err != nil {
			t.Logf("%s is not to be had here: %v", listen, err)
			continue
		}
		first := a.URL()
		if conn, err := net.Dial("tcp", strings.TrimPrefix(first, "http://")); err != nil {
			t.Errorf("%q: %v", listen, err)
		} else {
			must(t, conn.Close())
		}
		must(t, listener.Close())
		listener, err = a.bind(t.Context(), "http")
		must(t, err)
		if a.URL() != first {
			t.Errorf("%q: bound %s, then %s", listen, first, a.URL())
		}
		must(t, listener.Close())
	}
}

// Killed again and again under load: every request is answered or sees its
// connection break, and nothing else.
func TestKillsUnderLoad(t *testing.T) {
	s := start(t, nil)
	s.grant("user-1", "laptop")
	url, proof := s.address.URL(), s.proof("user-1", "laptop")
	loaded, unload := context.WithCancel(t.Context())
	defer unload()
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for loaded.Err() == nil {
				if status, body, err := s.ask("POST", url+"/exchange", proof); err == nil && status != 200 && status != 503 {
					t.Errorf("got %d %s", status, body)
				}
			}
		})
	}
	for generation := uint64(1); generation <= 5; generation++ {
		events := s.tree.Events(1024)
		_, err := s.tree.Kill("exchange", supervisor.How(generation%2)) // panic and stop in turn
		must(t, err)
		happens(t, events, opened("exchange", generation+1))
		events.Close()
	}
	unload()
	clients.Wait()
	if status, body, err := s.ask("POST", url+"/exchange", proof); err != nil || status != 200 {
		t.Errorf("afterwards: %d %s, %v", status, body, err)
	}
}
