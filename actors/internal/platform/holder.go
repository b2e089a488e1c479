package platform

import (
	"context"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Holder is the platform at a controller's door, for as long as a place is assigned.
type Holder struct {
	door *Door
	at   messages.PlatformPlace
}

// Holder is who asks about a place.
func (d *Door) Holder(at messages.PlatformPlace) Holder { return Holder{d, at} }

// Who is on whose behalf it is asked.
func (h Holder) Who() messages.Principal {
	return messages.Principal{Owner: h.door.owner, Actor: messages.PlatformActor}
}

// Admit refuses the platform unless the place is assigned now, whatever the ledger holds.
func (h Holder) Admit(ctx context.Context, _ ledger.Source) error {
	_, err := h.door.Admit(ctx, h.at)
	return err
}

// About refuses, with messages.NotAssigned, a request about another instance than the
// place.
func About(at messages.PlatformPlace, endpoint, instance string) error {
	if endpoint != at.Endpoint || instance != at.Instance {
		return messages.NotAssigned.Because("the request is about another instance than its place")
	}
	return nil
}
