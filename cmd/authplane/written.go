package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// written is the service's answer to every change of a grant, and what the command
// did besides.
type written struct {
	Owner      string `json:"owner"`
	Actor      string `json:"actor"`
	UID        string `json:"uid"`
	Revision   uint64 `json:"revision"`
	ActorToken string `json:"actor_token,omitempty"`
	// SecretFile is where the secret went instead.
	SecretFile string `json:"secret_file,omitempty"`
	// OpID is the retirement that a revocation asked for.
	OpID string `json:"op_id,omitempty"`
	// EndsBy is when the connections have ended at the latest, where nobody can drop them.
	EndsBy time.Time `json:"ends_by,omitzero"`
	// Ended lists the machines, owner/actor, whose grants ended with a revoked one.
	Ended []string `json:"ended,omitempty"`
}

func (w written) principal() messages.Principal {
	return messages.Principal{Owner: w.Owner, Actor: w.Actor}
}

// writeGrant sends a grant, new or changed, and shows what came of it. The file for
// a secret is made ready before, so that none is made which nobody gets to see.
func (a *app) writeGrant(ctx context.Context, client *service.Client, method, path string, body any, secretFile string) error {
	var private *service.Private
	if secretFile != "" {
		var err error
		if private, err = service.CreatePrivate(secretFile); err != nil {
			return fmt.Errorf("--secret-file: %w", err)
		}
		defer private.Discard() // does nothing once it was placed
	}
	w, err := a.change(ctx, client, method, path, body)
	if err != nil {
		return err
	}
	switch {
	case private != nil && w.ActorToken == "":
		a.say("%s is not written: a person has no secret", secretFile)
	case private != nil:
		if err := private.Place([]byte(w.ActorToken)); err != nil {
			again := "authplane grant " + slashed(w.principal()) + " --edit --rotate-secret --secret-file <file>"
			return advised{failure{fmt.Errorf("granted, but the secret is lost: %w", err)}, again}
		}
		w.ActorToken, w.SecretFile = "", secretFile
	}
	return a.tellWritten(w)
}

// change sends one change of a grant.
func (a *app) change(ctx context.Context, client *service.Client, method, path string, body any) (written, error) {
	answer, err := client.SendPatiently(ctx, method, path, body, defaultWait) // for the end of a former incarnation
	if err != nil {
		return written{}, err
	}
	var w written
	err = decode(answer, &w)
	return w, err
}

func (a *app) tellWritten(w written) error {
	if a.json {
		return writeJSON(a.out, w)
	}
	if w.ActorToken != "" {
		a.say("the actor token is shown this once; whoever holds it is this machine")
	}
	return pairs(a.out,
		[2]string{"principal", slashed(w.principal())},
		[2]string{"uid", w.UID},
		[2]string{"revision", number(w.Revision)},
		[2]string{"actor_token", w.ActorToken},
		[2]string{"secret_file", w.SecretFile},
		[2]string{"operation", w.OpID},
		[2]string{"ends by", endsBy(w.EndsBy)},
		[2]string{"ended with it", strings.Join(w.Ended, " ")},
	)
}

// endsBy says when connections end that nobody can drop; empty where they are dropped.
func endsBy(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return moment(at) + ", with its permission: nobody can drop it here"
}
