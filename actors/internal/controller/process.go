package controller

import (
	"context"
	"fmt"

	"github.com/cotal-ai/authplane/messages"
)

// CheckProcess refuses, with messages.Malformed, a process that shows itself in a way that
// could never be recognized, whoever asks for it: above all one that shows no receipt.
// others are the keys that it asks for, which are none of its own.
func CheckProcess(p messages.RunController, others ...string) error {
	if err := checkPlace(p.Space, p.Actor, p.Endpoint, p.Instance); err != nil {
		return err
	}
	if p.Receipt.IsZero() {
		return messages.Malformed.Because("whoever asks about runs shows a receipt, which activate gives")
	}
	return checkKeys(p.Keys, others...)
}

// Recognize refuses a process that is not the registered one of its instance, or whose
// holder may not run it, now: with the checks of a door after activate, in their order,
// and by what the ledger remembers of that process. It writes nothing. It is refused as
// messages.CheckController says.
func (d *Desk) Recognize(ctx context.Context, holder Holder, p messages.RunController) error {
	if err := d.recognize(ctx, holder, p); err != nil {
		return fmt.Errorf("process %d of %s of %s: %w", p.Epoch, p.Instance, p.Endpoint, err)
	}
	return nil
}

func (d *Desk) recognize(ctx context.Context, holder Holder, p messages.RunController) error {
	if err := CheckProcess(p); err != nil {
		return err
	}
	if err := d.checkAsker(holder, p.Space, p.Actor); err != nil {
		return err
	}
	if err := d.admit(ctx, holder); err != nil {
		return err
	}
	gate, err := d.gate(ctx, holder, p.Endpoint, p.Instance, p.Epoch)
	if err != nil {
		return err
	}
	if gate.Principal != p.Principal {
		return messages.InstanceForeign
	}
	if err := checkReceipt(d.config.receiptOf(holder.Who(), gate, p.Keys), p.Receipt); err != nil {
		return err
	}
	return d.known.Recognize(ctx, p.Endpoint, p.Instance, p.Epoch, p.Keys)
}
