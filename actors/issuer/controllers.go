package issuer

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// atDoor answers a controller. It is asked again without harm: the request's id tells.
func (i *issuer) atDoor(ctx context.Context, store *ledger.Store, m messages.AskController) (messages.ControllerIssued, error) {
	return controller.New(store, i.config.Controllers).Answer(ctx, controller.Person(m.Person), m.Request)
}

// recognize tells whether whoever asks about a run is the process that it says. It writes
// nothing.
func (i *issuer) recognize(ctx context.Context, store *ledger.Store, m messages.CheckController) (messages.ControllerChecked, error) {
	return messages.ControllerChecked{}, controller.New(store, i.config.Controllers).Recognize(ctx, controller.Person(m.Person), m.Process)
}

func (i *issuer) listControllers(ctx context.Context, store *ledger.Store, _ messages.ListControllers) (messages.Controllers, error) {
	all, err := controller.New(store, i.config.Controllers).List(ctx)
	i.config.Unreadable(i.life.Log(), all.Unreadable...)
	return all, err
}
