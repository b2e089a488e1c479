package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

const (
	question = "chat.question"
	// allowed is what both may say and hear.
	allowed = "chat.>"
	// elsewhere is granted to neither.
	elsewhere = "payroll.salaries"
)

func (s *story) boot(ctx context.Context) (string, error) {
	subject, err := s.stage.Start(ctx)
	if err != nil {
		return "", err
	}
	s.subject = subject
	if s.client, err = service.Open(subject.Record()); err != nil {
		return "", err
	}
	if status := subject.Status(); status.State != messages.SpaceReady {
		return "", fmt.Errorf("the space is %s: %s", status.State, status.Cause)
	}
	// What is begun later ends with its work; these are there until the space closes.
	if s.actors, err = standing(subject.Tree()); err != nil {
		return "", err
	}
	return fmt.Sprintf("broker, identity provider and a space of %d actors, every one open", len(s.actors)), nil
}

func (s *story) grant(ctx context.Context) (string, error) {
	s.alice = person{subject: "alice", principal: messages.Principal{Actor: "laptop"}}
	s.bob = person{subject: "bob", principal: messages.Principal{Actor: "laptop"}}
	for _, p := range []*person{&s.alice, &s.bob} {
		answer, err := s.client.Send(ctx, http.MethodPost, "/v1/grants", map[string]any{
			"sub": p.subject, "actor": p.principal.Actor, "serve": true,
			"publish": []string{allowed}, "subscribe": []string{allowed},
		})
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(answer, &p.principal); err != nil {
			return "", err
		}
	}
	if s.alice.principal.Owner == s.bob.principal.Owner {
		return "", errors.New("two people have one owner")
	}
	return "alice and bob may speak and listen on " + allowed + ", each as an owner of their own", nil
}

func (s *story) logIn(ctx context.Context) (string, error) {
	if err := s.alice.logIn(ctx, s.client); err != nil {
		return "", err
	}
	return "a login at the provider became a token for each, for the owner that was granted", s.bob.logIn(ctx, s.client)
}

func (s *story) connect(context.Context) (string, error) {
	if err := s.alice.join(s.subject.Record()); err != nil {
		return "", err
	}
	return "both stand on the broker, let in by the space", s.bob.join(s.subject.Record())
}

func (s *story) talk(ctx context.Context) (string, error) {
	subscription, err := s.bob.conn.Subscribe(allowed, func(m *nats.Msg) { _ = m.Respond([]byte("hello " + string(m.Data))) })
	if err != nil {
		return "", err
	}
	if err := s.bob.conn.FlushWithContext(ctx); err != nil {
		return "", fmt.Errorf("bob listens: %w", err)
	}
	defer func() { _ = subscription.Unsubscribe() }()
	reply, err := s.alice.conn.RequestWithContext(ctx, question, []byte("alice"))
	if err != nil {
		return "", fmt.Errorf("alice asks: %w", err)
	}
	if string(reply.Data) != "hello alice" {
		return "", fmt.Errorf("alice heard %q", reply.Data)
	}
	return "alice asked, bob answered, the answer came to alice's own inbox", nil
}

func (s *story) eavesdrop(ctx context.Context) (string, error) {
	heard, err := s.bob.conn.SubscribeSync(s.alice.principal.InboxPrefix() + ".>")
	if err != nil {
		return "", err
	}
	if err := s.bob.denied(ctx, s.bob.conn.Flush); err != nil {
		return "", fmt.Errorf("bob listens at alice's inbox: %w", err)
	}
	if err := s.alice.conn.Publish(s.alice.principal.InboxPrefix()+".secret", nil); err != nil {
		return "", err
	}
	if err := errors.Join(s.alice.conn.FlushWithContext(ctx), s.bob.conn.FlushWithContext(ctx)); err != nil {
		return "", err
	}
	if n, _, err := heard.Pending(); err == nil && n > 0 {
		return "", errors.New("bob heard what was said in alice's inbox")
	}
	return "bob listened at alice's inbox: the broker refused, and he heard nothing", nil
}

func (s *story) overreach(ctx context.Context) (string, error) {
	publish := func() error {
		return errors.Join(s.bob.conn.Publish(elsewhere, nil), s.bob.conn.Flush())
	}
	if err := s.bob.denied(ctx, publish); err != nil {
		return "", fmt.Errorf("bob speaks on %s: %w", elsewhere, err)
	}
	return "bob spoke on " + elsewhere + ", which nobody granted: refused", nil
}

// denied does something that must be met with a permissions violation.
func (p *person) denied(ctx context.Context, do func() error) error {
	if err := do(); err != nil {
		return err
	}
	if err := p.refused(ctx); !errors.Is(err, nats.ErrPermissionViolation) {
		return fmt.Errorf("it was not refused: %v", err)
	}
	return nil
}

func (s *story) revoke(ctx context.Context) (string, error) {
	path := "/v1/grants/" + s.bob.principal.Owner + "/" + s.bob.principal.Actor
	began := time.Now()
	answer, err := s.client.Send(ctx, http.MethodDelete, path, nil)
	if err != nil {
		return "", err
	}
	var asked proof
	if err := json.Unmarshal(answer, &asked); err != nil {
		return "", err
	}
	conn, err := s.bob.dial(s.subject.Record(), func(error) {})
	if err == nil {
		conn.Close()
		return "", errors.New("bob is revoked and came in again")
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		return "", fmt.Errorf("bob is revoked, and the broker says: %w", err)
	}
	refused := time.Since(began)
	if _, err := s.retired(ctx, asked.OpID); err != nil {
		return "", err
	}
	if err := s.bob.cut(ctx); err != nil {
		return "", err
	}
	told := fmt.Sprintf("bob's token has minutes to live: his next connect was refused after %d ms, the connection he had was cut within %d ms",
		refused.Milliseconds(), time.Since(began).Milliseconds())
	return told, s.login(ctx)
}

// login checks that a revoked person gets no new token either.
func (s *story) login(ctx context.Context) error {
	again := s.bob
	var refused *service.Refusal
	err := again.logIn(ctx, s.client)
	if !errors.As(err, &refused) || refused.Code != messages.PermissionDenied {
		return fmt.Errorf("bob is revoked and logs in: %v", err)
	}
	return nil
}

func (s *story) explain(ctx context.Context) (string, error) {
	var found messages.Denial
	err := until(ctx, func() (bool, error) {
		var list struct {
			Denials []messages.Denial `json:"denials"`
		}
		answer, err := s.client.Get(ctx, "/v1/denials")
		if err == nil {
			err = json.Unmarshal(answer, &list)
		}
		for _, d := range list.Denials {
			if d.Principal == s.bob.principal.String() {
				found = d
			}
		}
		return found.ID != "", err
	})
	if err != nil {
		return "", fmt.Errorf("find the denial of bob: %w", err)
	}
	if _, err := s.client.Get(ctx, "/v1/denials/"+found.ID); err != nil {
		return "", err
	}
	if found.Kind != messages.Denied || found.Code != messages.PermissionDenied || found.Remedy == "" {
		return "", fmt.Errorf("bob was revoked, and it is explained as %+v", found)
	}
	return strings.TrimSpace(fmt.Sprintf("`authplane explain` knows why: %s; remedy: %s", found.Reason, found.Remedy)), nil
}
