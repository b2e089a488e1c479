package memory_test

import (
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/actors/internal/ledger/memory"
)

func TestScannerContract(t *testing.T) {
	contract.Scanner(t, func(*testing.T) contract.Scannable {
		b := memory.New()
		return contract.Scannable{Subject: contract.Subject{Backend: b, Mark: func(_ *testing.T, key string) { b.Mark(key) }}, Scanner: b, Marker: b}
	})
}
