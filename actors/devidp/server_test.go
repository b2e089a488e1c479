package devidp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/devidp"
	"github.com/cotal-ai/authplane/messages"
)

func TestRestartKeepsAddressAndKey(t *testing.T) {
	server, err := devidp.New(devidp.Config{ClientID: clientID})
	if err != nil {
		t.Fatal(err)
	}
	if server.Issuer() != "" {
		t.Errorf("it has the issuer %s before it has an address", server.Issuer())
	}
	first, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	issuer, token := server.Issuer(), secretToken(t, first, "user-1")
	second, err := server.Start(t.Context()) // cuts the first
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Ended():
	default:
		t.Error("the second run began before the first one ended")
	}
	stop(t, second)
	third, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, third)
	if server.Issuer() != issuer {
		t.Errorf("it moved from %s to %s", issuer, server.Issuer())
	}
	if subject, err := subjectOf(t, server, token.Reveal()); err != nil || subject != "user-1" {
		t.Errorf("a token of an earlier run: %q, %v", subject, err)
	}
}

func TestKeptKeyOutlivesTheProcess(t *testing.T) {
	key, err := devidp.NewKey("ES256")
	if err != nil {
		t.Fatal(err)
	}
	before, run := started(t, devidp.Config{Key: key})
	token := secretToken(t, run, "user-1")
	stop(t, run)
	after, _ := started(t, devidp.Config{Key: key, Address: before.Address()})
	if subject, err := subjectOf(t, after, token.Reveal()); err != nil || subject != "user-1" {
		t.Errorf("got %q, %v", subject, err)
	}
}

func TestStopWaitsForARequestAndSeverDoesNot(t *testing.T) {
	server, run := started(t, devidp.Config{})
	hang := func() net.Conn { // a request whose body does not come
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.Issuer(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		request := "POST /dev/token HTTP/1.1\r\nHost: " + strings.TrimPrefix(server.Issuer(), "http://") +
			"\r\nContent-Type: application/json\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
		if _, err := conn.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 12)); err != nil || n == 0 { // 100 Continue: the handler reads
			t.Fatal(n, err)
		}
		return conn
	}
	hang()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := run.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stop that had to cut: %v", err)
	}
	<-run.Ended()
	if run.Err() != nil {
		t.Errorf("an end that was asked for: %v", run.Err())
	}
	again, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hang()
	again.Sever()
	<-again.Ended()
	if _, err := browser().Get(server.Issuer()); err == nil {
		t.Error("it answers after its end")
	}
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	server, _ := started(t, devidp.Config{})
	if got := get(t, server.Issuer()+"/nowhere"); got.status != http.StatusNotFound {
		t.Errorf("status %d", got.status)
	}
}

func TestConfigRefusals(t *testing.T) {
	for what, config := range map[string]devidp.Config{
		"no client":           {},
		"an open address":     {ClientID: clientID, Address: "0.0.0.0:0"},
		"a name":              {ClientID: clientID, Address: "localhost:0"},
		"no port":             {ClientID: clientID, Address: "127.0.0.1"},
		"a broken key":        {ClientID: clientID, Key: messages.NewSecret("{")},
		"a shared secret":     {ClientID: clientID, Key: messages.NewSecret(`{"kty":"oct","k":"AAAA","kid":"a","alg":"HS256"}`)},
		"a key without a kid": {ClientID: clientID, Key: messages.NewSecret(`{"kty":"OKP","crv":"Ed25519","x":"AA"}`)},
	} {
		if server, err := devidp.New(config); !errors.Is(err, messages.Malformed) || server != nil {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := devidp.NewKey("HS256"); !errors.Is(err, messages.Malformed) {
		t.Errorf("a key for HS256: %v", err)
	}
}

func TestAddressInUse(t *testing.T) {
	server, _ := started(t, devidp.Config{})
	other, err := devidp.New(devidp.Config{ClientID: clientID, Address: server.Address()})
	if err != nil {
		t.Fatal(err)
	}
	if run, err := other.Start(t.Context()); err == nil {
		stop(t, run)
		t.Error("two listen on one address")
	}
}
