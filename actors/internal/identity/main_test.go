package identity_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when these tests happen.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func must[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func secret(text string) messages.Secret { return messages.NewSecret(text) }
