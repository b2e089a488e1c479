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

	"github.com/cotal-ai/authplane/messages"
)

// proof is what the story reads of a retirement.
type proof struct {
	OpID    string   `json:"op_id"`
	Outcome string   `json:"outcome"`
	Evicted int      `json:"evicted"`
	Servers []string `json:"servers"`
	TookMS  int64    `json:"took_ms"`
}

func (p proof) check() error {
	if p.OpID == "" || p.Outcome != "retired" || p.Evicted < 1 || len(p.Servers) == 0 {
		return fmt.Errorf("proved is %+v", p)
	}
	return nil
}

func (p proof) String() string {
	return fmt.Sprintf("%d connection dropped, proved gone by a sweep of %s, %d ms, operation %s", p.Evicted, strings.Join(p.Servers, " "), p.TookMS, p.OpID)
}

// retire ends somebody who is connected, and checks that she is gone and stays so.
func (s *story) retire(ctx context.Context) (string, error) {
	carol := person{subject: "carol", principal: messages.Principal{Actor: "laptop"}}
	answer, err := s.client.Send(ctx, http.MethodPost, "/v1/grants", map[string]any{
		"sub": carol.subject, "actor": carol.principal.Actor, "publish": []string{allowed}, "subscribe": []string{allowed},
	})
	if err == nil {
		err = json.Unmarshal(answer, &carol.principal)
	}
	if err == nil {
		err = carol.logIn(ctx, s.client)
	}
	if err == nil {
		err = carol.join(s.subject.Record())
	}
	if err != nil {
		return "", err
	}
	defer carol.leave()
	answer, err = s.client.SendPatiently(ctx, http.MethodPost, "/v1/retire", map[string]any{
		"owner": carol.principal.Owner, "actor": carol.principal.Actor,
	}, stepTime)
	if err != nil {
		return "", err
	}
	var proved proof
	if err := errors.Join(json.Unmarshal(answer, &proved), proved.check()); err != nil {
		return "", err
	}
	if err := carol.cut(ctx); err != nil {
		return "", err
	}
	conn, err := carol.dial(s.subject.Record(), func(error) {})
	if err == nil {
		conn.Close()
		return "", errors.New("carol is retired and came in again")
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		return "", fmt.Errorf("carol is retired, and the broker says: %w", err)
	}
	return "carol stood on the broker: " + proved.String(), nil
}

// retired waits for a retirement that was asked for and returns what it proved.
func (s *story) retired(ctx context.Context, op string) (proved proof, err error) {
	if op == "" {
		return proved, errors.New("the revocation asked for no retirement")
	}
	err = until(ctx, func() (bool, error) {
		answer, err := s.client.Get(ctx, "/v1/operations/"+op)
		if err != nil {
			return false, nil // it may not be begun yet
		}
		err = json.Unmarshal(answer, &proved)
		return proved.Outcome == "retired", err
	})
	if err != nil {
		return proved, fmt.Errorf("the retirement %s is not over: %w", op, err)
	}
	return proved, proved.check()
}

// cut waits until the person's connection has been dropped; it does not come back by
// itself.
func (p *person) cut(ctx context.Context) error {
	began := time.Now()
	if err := until(ctx, func() (bool, error) { return p.conn.IsClosed(), nil }); err != nil {
		return fmt.Errorf("%s is still connected after %s: %w", p.subject, time.Since(began).Round(time.Millisecond), err)
	}
	return nil
}
