package devidp

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	// label names the listener in inventories.
	label = "cotal:dev-idp"
	// maxBody bounds every request's body, in bytes.
	maxBody = 64 << 10
)

// Run is one time that a provider serves, from Start to Ended.
type Run struct {
	server  *Server
	storage *storage
	http    *http.Server
	conns   sync.WaitGroup // one for each connection's goroutine
	ended   chan struct{}  // closed when nothing of the run is left
	failed  error          // read after ended
}

func newRun(s *Server, listener net.Listener, issuer string) (*Run, error) {
	r := &Run{server: s, storage: newStorage(s.client, s.key, s.now), ended: make(chan struct{})}
	provider, err := op.NewProvider(&op.Config{
		CryptoKey: s.codeKey(), CryptoKeyId: "1", CodeMethodS256: true,
		DeviceAuthorization: op.DeviceAuthorizationConfig{Lifetime: loginWithin, PollInterval: time.Second,
			UserFormPath: devicePath, UserCode: op.UserCodeBase20},
	}, r.storage, op.StaticIssuer(issuer), op.WithAllowInsecure(), op.WithCORSOptions(nil))
	if err != nil {
		return nil, err
	}
	pages := &logins{storage: r.storage, provider: provider, issuer: issuer, page: page()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+tokenPath, r.giveToken)
	mux.HandleFunc(loginPath, pages.logIn)
	mux.HandleFunc(devicePath, pages.approve)
	mux.Handle("/", provider)
	r.http = &http.Server{
		Handler:           guard(listener.Addr().String(), mux),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		MaxHeaderBytes: maxBody, ErrorLog: log.New(io.Discard, "", 0), ConnState: r.count,
	}
	go r.serve(listener) // ends before Ended is closed
	return r, nil
}

func (r *Run) serve(listener net.Listener) {
	defer close(r.ended)
	err := r.http.Serve(listener)
	if !errors.Is(err, http.ErrServerClosed) {
		r.failed = err
		_ = r.http.Close()
	}
	r.conns.Wait()
}

// count follows the connections: the first call for each comes from Serve itself,
// so that none can appear after it has returned.
func (r *Run) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		r.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		r.conns.Done()
	}
}

// Label names the run in inventories.
func (r *Run) Label() string { return label }

// Sever cuts the listener and every connection.
func (r *Run) Sever() { _ = r.http.Close() }

// Ended is closed when the listener and every connection are gone, with their goroutines.
func (r *Run) Ended() <-chan struct{} { return r.ended }

// Err says why a run ended that nobody ended. Call it once Ended is closed.
func (r *Run) Err() error { return r.failed }

// Stop lets requests that are being answered finish, cuts what is left when ctx
// ends, and returns when all of it is gone.
func (r *Run) Stop(ctx context.Context) error {
	err := r.http.Shutdown(ctx)
	r.Sever()
	<-r.ended
	return err
}

// guard keeps other people's web pages out: a request must name our own address
// (a name that resolves to the loopback does not do), and one from a page must come
// from a page of ours. Bodies are bounded.
func guard(host string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); r.Host != host || origin != "" && origin != "http://"+host {
			http.Error(w, "not from here", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}
