package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// maxProof is the longest proof that is read from a file, in bytes.
const maxProof = 64 << 10

// proofFlags says with what somebody logs in. Secrets come from files, never from
// the command line, which every user of the machine can read.
type proofFlags struct {
	sub            string
	idTokenFile    string
	owner, actor   string
	actorTokenFile string
	ttl            time.Duration
}

// name takes the principal from the one argument, where there is one. With a
// person's proof the owner says whose it must be.
func (f *proofFlags) name(args []string) error {
	if len(args) == 0 {
		return nil
	}
	p, err := parsePrincipal(args[0])
	if err != nil {
		return err
	}
	if f.owner+f.actor != "" {
		return usage("name the principal once: as owner/actor or with --owner and --actor")
	}
	f.owner, f.actor = p.Owner, p.Actor
	return nil
}

func (f *proofFlags) define(set *pflag.FlagSet) {
	set.StringVar(&f.sub, "sub", "", "log in at the development identity provider as this `subject`")
	set.StringVar(&f.idTokenFile, "id-token-file", "", "the `file` with an id token of the identity provider; - is the input")
	set.StringVar(&f.owner, "owner", "", "the `owner`; a person's follows from the proof")
	set.StringVar(&f.actor, "actor", "", "the `actor` to be, one of the owner's")
	set.StringVar(&f.actorTokenFile, "actor-token-file", "", "the `file` with a machine's secret; - is the input")
	set.DurationVar(&f.ttl, "ttl", 0, "how long the token is to live, at most 15m; the longest that is allowed if left out")
}

func (f *proofFlags) check() error {
	ways := 0
	for _, given := range []string{f.sub, f.idTokenFile, f.actorTokenFile} {
		if given != "" {
			ways++
		}
	}
	switch {
	case f.actor == "":
		return usage("name the principal: owner/actor, or --actor")
	case ways != 1:
		return usage("give --sub, --id-token-file or --actor-token-file, exactly one of them")
	case f.actorTokenFile != "" && f.owner == "":
		return usage("--actor-token-file needs the owner also")
	case f.ttl < 0 || f.ttl%time.Second != 0:
		return usage("--ttl is a number of whole seconds, such as 90s or 15m")
	}
	return nil
}

// named puts whom it is about into the step that leads on: the service does not tell
// whoever asks, and here it is known. A machine that was granted once needs more than a
// new grant.
func (f *proofFlags) named(err error) error {
	var refused *service.Refusal
	if !errors.As(err, &refused) || !strings.Contains(refused.Next, "<owner>/<actor>") {
		return err
	}
	switch {
	case f.actorTokenFile != "":
		return advised{err, "authplane show " + f.owner + "/" + f.actor}
	case f.owner != "":
		return advised{err, "authplane grant " + f.owner + "/" + f.actor}
	case f.sub != "":
		return advised{err, "authplane grant --sub " + shellWord(f.sub) + " --actor " + f.actor}
	}
	return err
}

// bearer is a token, and with what else its holder connects.
type bearer struct {
	Token     string    `json:"token"`
	Owner     string    `json:"owner"`
	ExpiresAt time.Time `json:"expires_at"`

	NATSURL       string `json:"nats_url"`
	SentinelCreds string `json:"sentinel_creds"`
	InboxPrefix   string `json:"inbox_prefix"`
}

// exchange turns a proof into a bearer.
func (a *app) exchange(ctx context.Context, client *service.Client, f proofFlags) (bearer, error) {
	body, err := a.proof(ctx, client, f)
	if err != nil {
		return bearer{}, err
	}
	if f.ttl > 0 {
		body["ttl_seconds"] = int64(f.ttl / time.Second)
	}
	answer, err := client.Send(ctx, http.MethodPost, "/exchange", body)
	if err != nil {
		return bearer{}, fmt.Errorf("exchange the proof: %w", err)
	}
	var b bearer
	if err := decode(answer, &b); err != nil {
		return bearer{}, err
	}
	if f.owner != "" && b.Owner != f.owner {
		return bearer{}, messages.ProofInvalid.Because("it is %s's, not %s's", b.Owner, f.owner)
	}
	record, principal := client.Record(), messages.Principal{Owner: b.Owner, Actor: f.actor}
	b.NATSURL, b.SentinelCreds, b.InboxPrefix = record.NATSURL, record.SentinelCreds, principal.InboxPrefix()
	return b, nil
}

func (a *app) proof(ctx context.Context, client *service.Client, f proofFlags) (map[string]any, error) {
	if f.actorTokenFile != "" {
		secret, err := a.readSecret(f.actorTokenFile)
		if err != nil {
			return nil, err
		}
		return map[string]any{"owner": f.owner, "actor": f.actor, "actor_token": secret.Reveal()}, nil
	}
	token, err := a.idToken(ctx, client, f)
	if err != nil {
		return nil, err
	}
	return map[string]any{"id_token": token.Reveal(), "actor": f.actor}, nil
}

func (a *app) idToken(ctx context.Context, client *service.Client, f proofFlags) (messages.Secret, error) {
	if f.sub != "" {
		return client.DevelopmentToken(ctx, f.sub)
	}
	return a.readSecret(f.idTokenFile)
}

// readSecret reads a secret from a file, or from the input for "-".
func (a *app) readSecret(path string) (messages.Secret, error) {
	source := a.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return messages.Secret{}, err
		}
		defer file.Close()
		source = file
	}
	body, err := io.ReadAll(io.LimitReader(source, maxProof+1))
	if err != nil {
		return messages.Secret{}, fmt.Errorf("read %s: %w", path, err)
	}
	secret := strings.TrimSpace(string(body))
	if secret == "" || len(body) > maxProof {
		return messages.Secret{}, usage("%s holds no secret: it is empty or over %d bytes", path, maxProof)
	}
	return messages.NewSecret(secret), nil
}
