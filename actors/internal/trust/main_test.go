package trust_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// makerDir has the test binary make a chain there and say how it went, as a
// process of its own.
const makerDir = "TRUST_TEST_MAKE_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(makerDir); dir != "" {
		os.Exit(makeChain(dir))
	}
	goleak.VerifyTestMain(m)
}

func makeChain(dir string) int {
	err := trust.Create(context.Background(), trust.Options{Dir: dir, Space: "acme"})
	switch {
	case err == nil:
		return 0
	case errors.Is(err, messages.ChainStands):
		return 3
	default:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}
