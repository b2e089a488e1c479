package runs

import (
	"context"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// Asker is on whose behalf a controller asks about a run, and so what it has to show. It
// is made by the door that was asked, from what was proved there, and never from the
// question. The zero value is nobody, who shows in vain whatever he shows.
type Asker struct {
	// host is whoever embeds the space.
	host bool
	// check asks the issuer about a process elsewhere.
	check func(messages.RunController) any
}

// Host is whoever embeds the space and registered the instance himself: the gate tells.
func Host() Asker { return Asker{host: true} }

// Person is somebody with the scope supervise, whose controller shows its receipt.
func Person(p messages.ControllerPerson) Asker {
	return Asker{check: func(c messages.RunController) any { return messages.CheckController{Person: p, Process: c} }}
}

// Platform is whoever hosts the space, for the place that is assigned: the controller
// there shows its receipt too.
func Platform(at messages.PlatformPlace) Asker {
	return Asker{check: func(c messages.RunController) any { return messages.CheckPlatformController{At: at, Process: c} }}
}

// receipts is what this asker is judged by; ref finds the actors that tell.
func (r *Runs) receipts(by Asker, ref func(path string) supervisor.Ref) run.Receipts {
	if by.host {
		return run.ByGate(authority{ref(r.config.Reader)})
	}
	return run.ByReceipt(registered{ref(r.config.Issuer), by.check})
}

// recognize refuses a controller elsewhere before anything is begun for it: it costs no
// connection, and hears of nothing but itself.
func (r *Runs) recognize(ctx context.Context, tree *supervisor.Tree, by Asker, who messages.RunController) error {
	if by.host {
		return nil
	}
	return r.receipts(by, func(path string) supervisor.Ref { ref, _ := tree.Ref(path); return ref }).Check(ctx, who)
}

// overseen does what takes more than the records: what a controller elsewhere was
// overtaken over, after they were written, is withheld.
func overseen[A any](ctx context.Context, r *Runs, tree *supervisor.Tree, by Asker, who messages.RunController, do func() (A, error)) (A, error) {
	var none A
	if err := r.recognize(ctx, tree, by, who); err != nil {
		return none, err
	}
	answer, err := do()
	if err == nil {
		err = r.recognize(ctx, tree, by, who)
	}
	if err != nil {
		return none, err
	}
	return answer, nil
}

// registered asks the issuer.
type registered struct {
	issuer supervisor.Ref
	check  func(messages.RunController) any
}

// Recognize is run.Registered.
func (i registered) Recognize(ctx context.Context, who messages.RunController) error {
	if i.check == nil {
		return messages.ReceiptInvalid
	}
	_, err := client.Repeat[messages.ControllerChecked](ctx, i.issuer, i.check(who), readWithin, client.Passes)
	return err
}
