package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const (
	// answerTime is how long one answer may take. The exchange holds a request back
	// for up to 10 s when it is crowded.
	answerTime = 15 * time.Second
	// answerSize is the most that is read of one answer; a listing of 100,000 grants
	// is some 40 MiB.
	answerSize = 256 << 20
)

// Client speaks to the loopback face of one service. It may be used from several
// goroutines.
type Client struct {
	record     Record
	capability messages.Secret
	http       *http.Client
}

// Open makes a client of the service the record describes. It reads the capability
// file and connects to nothing yet.
func Open(record Record) (*Client, error) {
	body, err := os.ReadFile(record.CapabilityFile)
	if err != nil {
		return nil, fmt.Errorf("read the capability of the service: %w", err)
	}
	return &Client{
		record:     record,
		capability: messages.NewSecret(strings.TrimSpace(string(body))),
		http: &http.Client{
			Timeout: answerTime,
			// The capability goes to the address in the record and nowhere else: neither
			// through a proxy of the environment nor after a redirect.
			Transport:     &http.Transport{Proxy: nil},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Record returns what the client was opened with.
func (c *Client) Record() Record { return c.record }

// Get asks for a path of the loopback face and returns the JSON of the answer.
func (c *Client) Get(ctx context.Context, path string) (json.RawMessage, error) {
	return c.call(ctx, request{method: http.MethodGet, address: c.record.URL + path, capability: c.capability})
}

// Send sends body, as JSON, with the given method; a nil body sends none.
func (c *Client) Send(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	return c.SendPatiently(ctx, method, path, body, 0)
}

// SendPatiently is Send for what the service is asked to wait for, so much longer
// than any other answer may take.
func (c *Client) SendPatiently(ctx context.Context, method, path string, body any, longer time.Duration) (json.RawMessage, error) {
	return c.call(ctx, request{method: method, address: c.record.URL + path, body: body, capability: c.capability, longer: longer})
}

// DevelopmentToken asks the development identity provider for an id token of the
// subject. Any other provider refuses. It fails with ProviderAbsent where there is none,
// and with ProviderUnreachable where it does not answer, which says nothing of the service.
func (c *Client) DevelopmentToken(ctx context.Context, subject string) (messages.Secret, error) {
	if c.record.ProviderIssuer == "" {
		return messages.Secret{}, messages.ProviderAbsent
	}
	address := strings.TrimSuffix(c.record.ProviderIssuer, "/") + "/dev/token"
	answer, err := c.call(ctx, request{method: http.MethodPost, address: address, body: map[string]string{"sub": subject}})
	switch {
	case errors.Is(err, messages.ServiceAway):
		return messages.Secret{}, messages.ProviderUnreachable.Because("%s: --sub is for the provider of authplane dev, use --id-token-file with any other", c.record.ProviderIssuer)
	case err != nil:
		return messages.Secret{}, fmt.Errorf("ask the development identity provider: %w", err)
	}
	var token struct {
		IDToken string `json:"id_token"`
	}
	if err := json.Unmarshal(answer, &token); err != nil || token.IDToken == "" {
		return messages.Secret{}, fmt.Errorf("%s is not a development identity provider; use --id-token-file", c.record.ProviderIssuer)
	}
	return messages.NewSecret(token.IDToken), nil
}

// request is one question.
type request struct {
	method, address string
	body            any             // nil for none
	capability      messages.Secret // zero for none
	longer          time.Duration   // beyond answerTime
}

func (c *Client) call(ctx context.Context, ask request) (json.RawMessage, error) {
	request, err := newRequest(ctx, ask.method, ask.address, ask.body)
	if err != nil {
		return nil, err
	}
	if !ask.capability.IsZero() {
		request.Header.Set("Authorization", "Bearer "+ask.capability.Reveal())
	}
	patient := *c.http
	patient.Timeout += ask.longer
	response, err := patient.Do(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, messages.ServiceAway.Because("its process %d stands still; end it, if it does not come back", c.record.PID)
	case err != nil:
		return nil, messages.ServiceAway.From(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerSize))
	if err != nil {
		return nil, messages.ServiceAway.From(err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, refusalFrom(response.StatusCode, answer)
	}
	return answer, nil
}

func newRequest(ctx context.Context, method, address string, body any) (*http.Request, error) {
	if body == nil {
		return http.NewRequestWithContext(ctx, method, address, nil)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}
