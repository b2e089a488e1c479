package run

import (
	"context"

	"github.com/cotal-ai/authplane/messages"
)

// Authority reads the ledger, as its leader holds it now.
type Authority interface {
	Instance(context.Context, messages.ReadInstance) (messages.Instance, error)
	Authority(context.Context, messages.ReadAuthority) (messages.Authority, error)
}

// Receipts tell whether whoever asks is the registered process of its instance.
type Receipts interface {
	// Check is refused with messages.InstanceNotFound, InstanceNotOpen, InstanceForeign and
	// InstanceSuperseded.
	Check(context.Context, messages.RunController) error
}

// Observed is who saw requests being published.
type Observed interface {
	// Await returns once the request was seen, or is refused with messages.RunUnwitnessed.
	Await(context.Context, messages.AwaitRequest) error
}

// ByGate is Receipts by what stands in the gate of the instance alone.
func ByGate(a Authority) Receipts { return byGate{a} }

type byGate struct{ authority Authority }

func (g byGate) Check(ctx context.Context, who messages.RunController) error {
	gate, err := g.authority.Instance(ctx, messages.ReadInstance{Endpoint: who.Endpoint, Instance: who.Instance})
	switch {
	case err != nil:
		return err
	case gate.State != messages.InstanceOpen:
		return messages.InstanceNotOpen
	case gate.Principal != who.Principal:
		return messages.InstanceForeign
	case gate.Epoch != who.Epoch:
		return messages.InstanceSuperseded
	}
	return nil
}
