package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// secretBytes is the length of a machine's secret, before encoding.
const secretBytes = 32

// enrollFlags is what `enroll` was told.
type enrollFlags struct {
	principal                 string
	scope, publish, subscribe []string
	serve                     bool
	role, label, parent       string
	secretFile, tokenHash     string
	find                      bool
}

// enrolledMachine is a machine as the service shows it.
type enrolledMachine struct {
	Owner       string `json:"owner"`
	Actor       string `json:"actor"`
	UID         string `json:"uid"`
	Revision    uint64 `json:"revision"`
	Step        string `json:"step"`
	Again       bool   `json:"again"`
	ExchangeURL string `json:"exchange_url"`
}

func (a *app) enrollCommand() *cobra.Command {
	var flags enrollFlags
	cmd := &cobra.Command{
		Use: "enroll [owner/actor]", GroupID: groupWho, Args: cobra.MaximumNArgs(1),
		Short: "Grant a machine with a secret of its own, and make what it needs",
		Long: "Grants a machine within what its --parent may do, makes what the configured\n" +
			"footprint says, and tells where it exchanges its secret. The service never sees\n" +
			"that: --token-hash is the hex SHA-256 of a secret which was made elsewhere, or\n" +
			"--secret-file names the file it is made in, or stands in already.\n\n" +
			"The same line may be repeated, and gets the same answer: the secret is what tells\n" +
			"one enrolment from another. Once the grant was revoked, it enrols the machine anew.\n" +
			"With --find it tells what was enrolled with a secret.",
		Example: "  authplane enroll " + exampleOwner + "/robot --parent " + exampleOwner + "/laptop --publish chat.robot --secret-file robot.secret\n" +
			"  authplane enroll --find --token-hash " + exampleHash,
		RunE: doing(func(ctx context.Context, args []string) error {
			if len(args) == 1 {
				flags.principal = args[0]
			}
			if err := flags.check(); err != nil {
				return err
			}
			if flags.find {
				return a.findEnrolment(ctx, flags)
			}
			return a.enroll(ctx, flags)
		}),
	}
	flags.define(cmd.Flags())
	return cmd
}

// exampleHash is of no secret.
var exampleHash = strings.Repeat("0123456789abcdef", 4)

func (f *enrollFlags) define(set *pflag.FlagSet) {
	set.StringSliceVar(&f.scope, "scope", nil, "`capabilities`, by comma or repeated")
	set.StringSliceVar(&f.publish, "publish", nil, "subject `patterns` it may publish to")
	set.StringSliceVar(&f.subscribe, "subscribe", nil, "subject `patterns` it may subscribe to")
	set.BoolVar(&f.serve, "serve", false, "it answers requests: it may publish to their reply subjects")
	set.StringVar(&f.role, "role", "", "the permission `profile`; the default one if left out")
	set.StringVar(&f.label, "label", "", "free `text` for listings")
	set.StringVar(&f.parent, "parent", "", "the `owner/actor` whose grant bounds it")
	set.StringVar(&f.secretFile, "secret-file", "", "the `file` of its secret, which only you can read; it is made if it is not there")
	set.StringVar(&f.tokenHash, "token-hash", "", "the `hash` of its secret, in place of a file")
	set.BoolVar(&f.find, "find", false, "only tell what was enrolled with that secret")
}

func (f *enrollFlags) check() error {
	switch {
	case f.find && f.principal != "":
		return usage("--find goes by the secret alone")
	case !f.find && f.principal == "":
		return usage("name the machine as owner/actor")
	case (f.secretFile == "") == (f.tokenHash == ""):
		return usage("give --secret-file or --token-hash, exactly one of them")
	}
	return nil
}

// enroll sends the hash of the secret, which stands in its file by then: whatever becomes
// of the answer, the same line asks the same question. A secret that was made for a
// question that is refused is no use to anybody.
func (a *app) enroll(ctx context.Context, flags enrollFlags) error {
	body, err := flags.body()
	if err != nil {
		return err
	}
	client, err := a.reach()
	if err != nil {
		return err
	}
	defer client.Close()
	hash, made, err := flags.hash(true)
	if err != nil {
		return err
	}
	body["token_hash"] = hash
	answer, err := client.SendPatiently(ctx, http.MethodPost, "/v1/enroll", body, defaultWait)
	if err != nil {
		code := exitCode(&verbError{err})
		if made && (code == messages.ExitRefused || code == messages.ExitUsage) {
			err = errors.Join(err, os.Remove(flags.secretFile))
		}
		return beneath(flags.parent, err)
	}
	return a.tellEnrolled(answer, flags)
}

func (a *app) findEnrolment(ctx context.Context, flags enrollFlags) error {
	hash, _, err := flags.hash(false)
	if err != nil {
		return err
	}
	client, err := a.reach()
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := client.Get(ctx, "/v1/enroll/"+url.PathEscape(hash))
	if err != nil {
		return err
	}
	return a.tellEnrolled(answer, flags)
}

func (a *app) tellEnrolled(answer []byte, flags enrollFlags) error {
	var m enrolledMachine
	if err := decode(answer, &m); err != nil || a.json {
		return a.pass(answer, err)
	}
	if m.Again && !flags.find {
		a.say("it was enrolled before, with this secret")
	}
	return pairs(a.out,
		[2]string{"principal", m.Owner + "/" + m.Actor},
		[2]string{"uid", m.UID},
		[2]string{"revision", number(m.Revision)},
		[2]string{"step", m.Step},
		[2]string{"exchange", m.ExchangeURL},
		[2]string{"secret_file", flags.secretFile},
	)
}

func (f *enrollFlags) body() (map[string]any, error) {
	p, err := parsePrincipal(f.principal)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"owner": p.Owner, "actor": p.Actor, "scope": given(f.scope), "publish": given(f.publish), "subscribe": given(f.subscribe), "serve": f.serve}
	for name, value := range map[string]string{"role": f.role, "label": f.label} {
		if value != "" {
			body[name] = value
		}
	}
	if f.parent != "" {
		parent, err := parsePrincipal(f.parent)
		if err != nil {
			return nil, err
		}
		body["parent"] = parent.String()
	}
	return body, nil
}

// hash is that of the secret: the one given, or of the secret in the file. With make a
// file that is not there is made with a new one, and made says so.
func (f *enrollFlags) hash(make bool) (hash string, made bool, err error) {
	if f.tokenHash != "" {
		return f.tokenHash, false, nil
	}
	secret, err := readSecret(f.secretFile)
	if errors.Is(err, fs.ErrNotExist) && make {
		secret, made = newSecret(), true
		err = service.WritePrivate(f.secretFile, []byte(secret.Reveal()))
	}
	if err != nil {
		return "", false, fmt.Errorf("--secret-file: %w", err)
	}
	sum := sha256.Sum256([]byte(secret.Reveal()))
	return hex.EncodeToString(sum[:]), made, nil
}

func newSecret() messages.Secret {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // cannot fail: without randomness the process ends
	return messages.NewSecret(base64.RawURLEncoding.EncodeToString(raw))
}

// readSecret reads a machine's secret from a file that nobody else can read.
func readSecret(path string) (messages.Secret, error) {
	info, err := os.Stat(path)
	if err != nil {
		return messages.Secret{}, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return messages.Secret{}, usage("%s stands, and is no file that only you can read", path)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return messages.Secret{}, err
	}
	text := strings.TrimRight(string(body), "\r\n")
	if raw, err := base64.RawURLEncoding.DecodeString(text); err != nil || len(raw) != secretBytes {
		return messages.Secret{}, usage("%s stands, and holds no machine's secret; name another file", path)
	}
	return messages.NewSecret(text), nil
}
