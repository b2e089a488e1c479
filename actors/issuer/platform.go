package issuer

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/messages"
)

// atPlatformDoor is atDoor for whoever hosts the space: what is assigned is read before
// anything is written, and once more before anything is signed.
func (i *issuer) atPlatformDoor(ctx context.Context, store *ledger.Store, m messages.AskPlatformController) (messages.ControllerIssued, error) {
	if err := platform.About(m.At, m.Request.Endpoint, m.Request.Instance); err != nil {
		return messages.ControllerIssued{}, err
	}
	return controller.New(store, i.config.Controllers).Answer(ctx, i.config.Platform.Holder(m.At), m.Request)
}

// recognizePlatform is recognize for whoever hosts the space: what is assigned is read
// each time.
func (i *issuer) recognizePlatform(ctx context.Context, store *ledger.Store, m messages.CheckPlatformController) (messages.ControllerChecked, error) {
	if err := platform.About(m.At, m.Process.Endpoint, m.Process.Instance); err != nil {
		return messages.ControllerChecked{}, err
	}
	return messages.ControllerChecked{}, controller.New(store, i.config.Controllers).Recognize(ctx, i.config.Platform.Holder(m.At), m.Process)
}
