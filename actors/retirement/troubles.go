package retirement

import (
	"fmt"
	"sync"

	"github.com/cotal-ai/authplane/messages"
)

// Troubles are the operations that do not get on, for an operator. They outlive the
// lives of the desk and are safe for concurrent use; the zero value is none.
type Troubles struct {
	mu    sync.Mutex
	items []messages.OperationProgress
}

// Problems says of each operation that had to be tried again what it waits for and
// which command leads on.
func (t *Troubles) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var problems []string
	for _, p := range t.items {
		said := fmt.Sprintf("%s of %s waits: %s", p.Kind, p.Principal, p.WaitingFor)
		if p.Kind == "" {
			said = fmt.Sprintf("operation %s waits: %s", p.ID, p.WaitingFor)
		}
		if p.Next != "" {
			said += " (next: " + p.Next + ")"
		}
		problems = append(problems, said)
	}
	return problems
}

func (t *Troubles) set(items []messages.OperationProgress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items = items
}
