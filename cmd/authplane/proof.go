package main

import (
	"context"
	"encoding/json"
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

func (f *proofFlags) define(set *pflag.FlagSet) {
	set.StringVar(&f.sub, "sub", "", "log in at the development identity provider as this `subject`")
	set.StringVar(&f.idTokenFile, "id-token-file", "", "the `file` with an id token of the identity provider; - is the input")
	set.StringVar(&f.owner, "owner", "", "a machine's `owner`")
	set.StringVar(&f.actor, "actor", "", "the `actor` to be")
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
		return usage("--actor is missing")
	case ways != 1:
		return usage("give --sub, --id-token-file or --actor-token-file, exactly one of them")
	case (f.actorTokenFile == "") != (f.owner == ""):
		return usage("--owner and --actor-token-file go together")
	case f.ttl < 0 || f.ttl%time.Second != 0:
		return usage("--ttl is a number of whole seconds, such as 90s or 15m")
	}
	return nil
}

// bearer is the service's answer to an exchange.
type bearer struct {
	Token     string    `json:"token"`
	Owner     string    `json:"owner"`
	ExpiresAt time.Time `json:"expires_at"`
}

// exchange turns a proof into a bearer. The JSON is the service's own answer.
func (a *app) exchange(ctx context.Context, client *service.Client, f proofFlags) (bearer, json.RawMessage, error) {
	body, err := a.proof(ctx, client, f)
	if err != nil {
		return bearer{}, nil, err
	}
	if f.ttl > 0 {
		body["ttl_seconds"] = int64(f.ttl / time.Second)
	}
	answer, err := client.Send(ctx, http.MethodPost, "/exchange", body)
	if err != nil {
		return bearer{}, nil, fmt.Errorf("exchange the proof: %w", err)
	}
	var b bearer
	err = decode(answer, &b)
	return b, answer, err
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
