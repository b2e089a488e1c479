package memory_test

import (
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
)

func TestContract(t *testing.T) {
	contract.Backend(t, func(*testing.T) contract.Subject {
		b := memory.New()
		return contract.Subject{Backend: b, Mark: func(_ *testing.T, key string) { b.Mark(key) }}
	})
}

func TestTransitions(t *testing.T) {
	contract.Transitions(t, 200, func(*testing.T) contract.Subject { return contract.Subject{Backend: memory.New()} })
}

func TestBarriers(t *testing.T) {
	contract.Barriers(t, func(*testing.T) contract.Subject { return contract.Subject{Backend: memory.New()} })
}

func TestCuts(t *testing.T) {
	contract.Cuts(t, func(*testing.T) contract.Subject { return contract.Subject{Backend: memory.New()} })
}

func TestIssues(t *testing.T) {
	contract.Issues(t, func(*testing.T) contract.Subject { return contract.Subject{Backend: memory.New()} })
}
