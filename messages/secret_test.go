package messages_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// holder keeps a secret where package fmt may not call its methods.
type holder struct {
	inner  messages.Secret
	Public messages.Secret
}

func TestSecretsAreNeverSeen(t *testing.T) {
	const seed = "SUAOCRET-NOT-TO-BE-SEEN"
	secret := messages.NewSecret(seed)
	var seen bytes.Buffer
	for _, value := range []any{secret, &secret, holder{secret, secret}, &holder{secret, secret}, []messages.Secret{secret}, map[string]messages.Secret{"a": secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			_, _ = fmt.Fprintf(&seen, verb, value)
		}
		slog.New(slog.NewJSONHandler(&seen, nil)).Info("x", "value", value)
		slog.New(slog.NewTextHandler(&seen, nil)).Info("x", "value", value)
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(raw)
	}
	seen.WriteString(fmt.Sprint(messages.Malformed.Because("%v", secret)))
	if text := seen.String(); strings.Contains(text, seed) || strings.Contains(text, fmt.Sprintf("%x", seed)) {
		t.Errorf("a secret was seen: %s", text)
	}
	if secret.Reveal() != seed || secret.IsZero() || !messages.NewSecret("").IsZero() || (messages.Secret{}).Reveal() != "" {
		t.Error("a secret is not what it was made from")
	}
}
