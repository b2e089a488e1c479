package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// person is somebody of the story: who they are, and how they are connected.
type person struct {
	// subject is who they are to the identity provider.
	subject   string
	principal messages.Principal
	token     messages.Secret
	conn      *nats.Conn
	// trouble is what the broker says no to; 16 slots, more than the story makes.
	trouble chan error
}

// logIn turns the person's login at the development provider into a token.
func (p *person) logIn(ctx context.Context, client *service.Client) error {
	login, err := client.DevelopmentToken(ctx, p.subject)
	if err != nil {
		return err
	}
	answer, err := client.Send(ctx, http.MethodPost, "/exchange", map[string]any{
		"id_token": login.Reveal(), "actor": p.principal.Actor,
	})
	if err != nil {
		return fmt.Errorf("exchange the login of %s: %w", p.subject, err)
	}
	var bearer struct {
		Token string `json:"token"`
		Owner string `json:"owner"`
	}
	if err := json.Unmarshal(answer, &bearer); err != nil {
		return err
	}
	if bearer.Owner != p.principal.Owner {
		return fmt.Errorf("%s was granted as %s and logged in as %s", p.subject, p.principal.Owner, bearer.Owner)
	}
	p.token = messages.NewSecret(bearer.Token)
	return nil
}

// dial connects as any NATS client would: with the sentinel's creds, the token, and
// the inbox prefix that is the person's alone.
func (p *person) dial(record service.Record, trouble func(error)) (*nats.Conn, error) {
	return nats.Connect(record.NATSURL,
		nats.Name("demo "+p.subject),
		nats.UserCredentials(record.SentinelCreds),
		nats.Token(p.token.Reveal()),
		nats.CustomInboxPrefix(p.principal.InboxPrefix()),
		nats.NoReconnect(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { trouble(err) }),
	)
}

// join connects the person for the rest of the story.
func (p *person) join(record service.Record) error {
	trouble := make(chan error, 16)
	conn, err := p.dial(record, func(err error) {
		select {
		case trouble <- err:
		default:
		}
	})
	if err != nil {
		return fmt.Errorf("connect %s: %w", p.subject, err)
	}
	p.conn, p.trouble = conn, trouble
	return nil
}

// leave ends the person's connection, if there is one.
func (p *person) leave() {
	if p.conn != nil {
		p.conn.Close()
	}
}

// refused waits for the broker's no to what the person has just asked for.
func (p *person) refused(ctx context.Context) error {
	select {
	case err := <-p.trouble:
		return err
	case <-ctx.Done():
		return nil
	}
}
