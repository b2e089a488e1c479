package face

import (
	"context"
	"errors"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/messages"
)

// put writes a grant. Where the incarnation of a revoked one still stands, it waits a
// little for the end of that.
func (f *Face) put(ctx context.Context, c *call, put messages.PutGrant) (messages.GrantWritten, error) {
	written, err := f.write(ctx, put)
	if !errors.Is(err, messages.IncarnationStanding) {
		return written, err
	}
	if err := f.awaitEnd(ctx, c, put.Principal); err != nil {
		return written, err
	}
	return f.write(ctx, put)
}

// awaitEnd waits until the incarnation that a revoked grant left behind has ended. It
// has that ended if nobody does: nothing of it is granted any more.
func (f *Face) awaitEnd(ctx context.Context, c *call, of messages.Principal) error {
	found, err := f.config.Authority.Read(ctx, messages.ReadAuthority{Principal: of, Head: true})
	if err != nil {
		return err
	}
	if found.HasGrant && found.Grant.State == messages.GrantLive {
		return messages.GrantStands
	}
	if !found.HasHead || found.Head.State == messages.HeadRetired {
		return nil
	}
	return f.endLife(ctx, c, of, found.Head.UID, messages.IncarnationStanding, regrantWait)
}

// endFormer ends the life that a grant is to take the place of, if there is one. What
// would refuse the grant afterwards is found out before.
func (f *Face) endFormer(ctx context.Context, c *call, put messages.PutGrant, wait time.Duration) error {
	if err := f.checkParents(ctx, put); err != nil {
		return err
	}
	found, err := f.config.Authority.Read(ctx, messages.ReadAuthority{Principal: put.Principal, Head: true})
	switch {
	case err != nil:
		return err
	case found.HasGrant && found.Grant.State == messages.GrantLive:
		return f.endLife(ctx, c, put.Principal, found.Grant.UID, messages.OperationPending, wait)
	case found.HasHead && found.Head.State != messages.HeadRetired:
		return f.endLife(ctx, c, put.Principal, found.Head.UID, messages.OperationPending, wait)
	}
	return nil
}

// grantAnew ends the incarnation of a grant that stands, and grants to the next one
// what the edit says.
func (f *Face) grantAnew(ctx context.Context, c *call, edit messages.EditGrant, stands messages.Grant, wait time.Duration) (messages.GrantWritten, error) {
	put := messages.PutGrant{
		Principal: edit.Principal, Kind: stands.Kind, Parent: stands.Parent,
		Allowance: edit.Allowance, Label: edit.Label, By: edit.By,
	}
	if err := f.checkParents(ctx, put); err != nil {
		return messages.GrantWritten{}, err
	}
	if err := f.endLife(ctx, c, edit.Principal, stands.UID, messages.OperationPending, wait); err != nil {
		return messages.GrantWritten{}, err
	}
	return f.put(ctx, c, put)
}

// checkParents refuses a grant that its parents do not cover now. The writer checks
// it again: by then they may have changed.
func (f *Face) checkParents(ctx context.Context, put messages.PutGrant) error {
	if put.Parent.IsZero() {
		return nil
	}
	above, err := f.config.Authority.Read(ctx, messages.ReadAuthority{Principal: put.Parent})
	if err != nil {
		return err
	}
	var chain []messages.Grant
	if above.HasGrant {
		chain = append([]messages.Grant{above.Grant}, above.Chain...)
	}
	child := messages.Grant{Principal: put.Principal, Kind: put.Kind, Parent: put.Parent, Allowance: put.Allowance}
	return grants.CheckChain(child, chain)
}

// endLife has one incarnation retired and waits for it. It names the incarnation, so that
// one which somebody else has begun meanwhile is left alone: the grant has moved then.
func (f *Face) endLife(ctx context.Context, c *call, of messages.Principal, uid string, entry messages.Error, wait time.Duration) error {
	asked, err := f.config.Operations.Retire(ctx, messages.AskRetirement{Principal: of, UID: uid, By: byOperator})
	switch {
	case errors.Is(err, messages.IncarnationEnded):
		return messages.GrantMoved.From(err)
	case err != nil || asked.Operation == "":
		return err
	}
	if _, err := f.settle(ctx, c, entry, asked.Operation, wait); err != nil {
		return err
	}
	return c.takeTurn(ctx)
}
