package provisioning

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// askWithin is how long one question to the ledger is repeated, over the restart of an
// actor.
const askWithin = 10 * time.Second

// by is who a grant was revoked by when that was for its footprint.
const by = "provisioning"

// journal asks the plane's actors. All it asks may be asked again: a write bears a
// witness by which it is known.
type journal struct {
	tree           *supervisor.Tree
	reader, writer string
}

func ask[T any](ctx context.Context, j journal, path string, m any) (T, error) {
	to, _ := j.tree.Ref(path)
	answer, err := client.Repeat[T](ctx, to, m, askWithin, client.Passes)
	return answer, client.Unsaid(err)
}

// Keys and the rest are footprint.Journal.
func (j journal) Keys(ctx context.Context, filter string) ([]string, error) {
	answer, err := ask[ledger.ProvisionKeys](ctx, j, j.writer, ledger.ListProvisions{Filter: filter})
	return answer.Keys, err
}

func (j journal) Read(ctx context.Context, key string) (footprint.Entry, bool, error) {
	answer, err := ask[ledger.ProvisionRead](ctx, j, j.writer, ledger.ReadProvision{Key: key})
	return footprint.Entry{Provision: answer.Provision, Revision: answer.Revision}, answer.Found, err
}

func (j journal) Write(ctx context.Context, e footprint.Entry) (footprint.Entry, error) {
	return j.written(ctx, e, writing(e))
}

func (j journal) Grant(ctx context.Context, e footprint.Entry, question messages.EnrolMachine) (footprint.Entry, error) {
	return j.written(ctx, e, ledger.GrantProvision{WriteProvision: writing(e), Ask: question})
}

func writing(e footprint.Entry) ledger.WriteProvision {
	return ledger.WriteProvision{Provision: e.Provision, Revision: e.Revision, Witness: names.NewUID()}
}

func (j journal) written(ctx context.Context, e footprint.Entry, m any) (footprint.Entry, error) {
	answer, err := ask[ledger.ProvisionWritten](ctx, j, j.writer, m)
	if err == nil && answer.Moved {
		err = footprint.ErrMoved
	}
	if err == nil {
		e.Revision = answer.Revision
	}
	return e, err
}

func (j journal) Standing(ctx context.Context, p messages.Principal) (messages.Authority, error) {
	return ask[messages.Authority](ctx, j, j.reader, messages.ReadAuthority{Principal: p, Head: true})
}

func (j journal) End(ctx context.Context, p messages.Principal, uid string) error {
	_, err := ask[messages.RetirementAsked](ctx, j, j.writer, messages.AskRetirement{Principal: p, UID: uid, By: by})
	if errors.Is(err, messages.IncarnationEnded) || errors.Is(err, messages.GrantNotFound) {
		return nil // another one goes on under the name, or none ever did
	}
	return err
}

// What the writer is asked for a footprint, for whoever does harm to it.
type (
	JournalWrite = ledger.WriteProvision
	JournalGrant = ledger.GrantProvision
)
