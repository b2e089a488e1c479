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

// Receipts tell whether whoever asks is the registered process of its instance. ByGate and
// ByReceipt are all there are.
type Receipts interface {
	// Check is refused with messages.InstanceNotFound, InstanceNotOpen, InstanceForeign and
	// InstanceSuperseded; ByReceipt as messages.CheckController says.
	Check(context.Context, messages.RunController) error
}

// Registered recognizes the processes of controllers by what the ledger holds now, on
// behalf of one holder; controller.Desk does.
type Registered interface {
	// Recognize is refused as messages.CheckController says.
	Recognize(context.Context, messages.RunController) error
}

// ByReceipt is Receipts for a controller elsewhere: the one that shows the receipt of the
// registration that counts. One that shows none is refused, with messages.ReceiptInvalid,
// before anybody is asked.
func ByReceipt(r Registered) Receipts { return byReceipt{r} }

type byReceipt struct{ registered Registered }

func (b byReceipt) Check(ctx context.Context, who messages.RunController) error {
	if who.Receipt.IsZero() {
		return messages.ReceiptInvalid
	}
	return b.registered.Recognize(ctx, who)
}

// Observed is who saw requests being published.
type Observed interface {
	// Await returns once the request was seen, or is refused with messages.RunUnwitnessed.
	Await(context.Context, messages.AwaitRequest) error
}

// ByGate is Receipts for whoever embeds the space: he registered the instance himself, so
// that what stands in its gate is all that counts. He shows nothing: a question with a
// receipt is somebody else's, which came by the wrong door, and is refused with
// messages.Malformed.
func ByGate(a Authority) Receipts { return byGate{a} }

type byGate struct{ authority Authority }

func (g byGate) Check(ctx context.Context, who messages.RunController) error {
	if !who.Receipt.IsZero() {
		return messages.Malformed.Because("a receipt is shown at the doors of controllers, and nothing here")
	}
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
