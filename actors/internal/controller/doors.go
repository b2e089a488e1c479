package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

// Signer signs users of SVC, the same to the same bytes.
type Signer func(broker.ControllerUser) (jwt string, err error)

// Config is what the doors of a space need.
type Config struct {
	Space string
	// ReceiptKey is the space's, as trust.Material derives it.
	ReceiptKey messages.Secret
	Sign       Signer
	// Standing is how long what stands lives, in whole seconds from MinStanding to
	// MaxStanding; 0 is DefaultStanding.
	Standing time.Duration
	// Options are the ledger's: its clock, and its source of names.
	Options ledger.Options
}

// CheckStanding refuses what is no life of what stands.
func CheckStanding(life time.Duration) error {
	if life < MinStanding || life > MaxStanding || life%time.Second != 0 {
		return messages.Malformed.Because("%s is not whole seconds from %s to %s", life, MinStanding, MaxStanding)
	}
	return nil
}

// Desk answers at the doors over one store. It is safe for concurrent use, also by
// several processes.
type Desk struct {
	config Config
	store  *ledger.Store
	issuer *ledger.Issuer
	known  *ledger.Controllers
}

// New answers over store.
func New(store *ledger.Store, c Config) *Desk {
	if c.Standing == 0 {
		c.Standing = DefaultStanding
	}
	if c.Options.Now == nil {
		c.Options.Now = time.Now
	}
	return &Desk{config: c, store: store, issuer: ledger.NewIssuer(store, c.Options), known: ledger.NewControllers(store, c.Options)}
}

// List tells which instances are run by controllers.
func (d *Desk) List(ctx context.Context) (messages.Controllers, error) { return d.known.List(ctx) }

// Answer gives holder what he asks for at a door: all of it, recorded, or nothing. The
// same request asked again has the same answer, as messages.ControllerRequest says.
// Besides what messages.AskController is refused with it may fail as Issuer.Issue does,
// and with OutcomeUnknown, after which the same request is asked again.
func (d *Desk) Answer(ctx context.Context, holder Holder, r messages.ControllerRequest) (messages.ControllerIssued, error) {
	issued, err := d.answer(ctx, holder, r)
	if err != nil {
		return messages.ControllerIssued{}, fmt.Errorf("%s of %s of %s: %w", r.Door, r.Instance, r.Endpoint, err)
	}
	return issued, nil
}

func (d *Desk) answer(ctx context.Context, holder Holder, r messages.ControllerRequest) (messages.ControllerIssued, error) {
	none := messages.ControllerIssued{}
	if err := Check(r); err != nil {
		return none, err
	}
	if err := d.checkAsker(holder, r.Space, r.Actor); err != nil {
		return none, err
	}
	if err := d.admit(ctx, holder); err != nil {
		return none, err
	}
	gate, err := d.gate(ctx, holder, r.Endpoint, r.Instance, r.Epoch)
	if err != nil {
		return none, err
	}
	receipt := d.config.receiptOf(holder.Who(), gate, r.Keys)
	if receipted(r.Door) {
		if err := checkReceipt(receipt, r.Receipt); err != nil {
			return none, err
		}
	}
	if r.Door == messages.DoorRetire && r.Target.Principal.Owner != gate.Principal.Owner {
		return none, messages.ControllerRetiresOthers
	}
	plan, err := d.plan(holder, r)
	if err != nil {
		return none, err
	}
	known, request, err := d.known.Reserve(ctx, ledger.ReserveController{Endpoint: r.Endpoint, Instance: r.Instance, Epoch: r.Epoch,
		Keys: r.Keys, Commands: r.Commands, Request: plan})
	if err != nil {
		return none, err
	}
	if err := d.record(ctx, gate, request); err != nil {
		return none, err
	}
	if err := d.admit(ctx, holder); err != nil { // whoever lost his right meanwhile is given nothing
		return none, err
	}
	return d.release(holder, r, gate, receipt, known, request)
}

// checkAsker refuses what is plain before anything is read.
func (d *Desk) checkAsker(holder Holder, space, actor string) error {
	switch {
	case space != d.config.Space:
		return messages.ControllerSpace
	case actor != holder.Who().Actor:
		return messages.ControllerActor
	}
	return nil
}

// admit refuses a holder who may not run controllers now, under a proved leader.
func (d *Desk) admit(ctx context.Context, holder Holder) error {
	if err := d.store.Sync(ctx); err != nil {
		return err
	}
	return holder.Admit(ctx, d.store)
}

// gate reads the gate of the instance, and refuses whoever may not have anything through
// it. It was proved a moment ago that this leader is the one.
func (d *Desk) gate(ctx context.Context, holder Holder, endpoint, instance string, epoch uint64) (messages.Instance, error) {
	row, found, err := d.store.Get(ctx, ledger.InstanceKey(endpoint, instance))
	switch {
	case err != nil:
		return messages.Instance{}, err
	case !found:
		return messages.Instance{}, messages.ControllerUnregistered
	}
	gate, err := ledger.DecodeInstance(row)
	switch {
	case err != nil:
	case gate.State != messages.InstanceOpen:
		err = messages.InstanceNotOpen
	case gate.Principal != Principal(holder.Who().Owner, instance):
		err = messages.InstanceForeign
	case gate.Epoch != epoch:
		err = messages.InstanceSuperseded.Because("this is process %d, and %d is registered", epoch, gate.Epoch)
	}
	return gate, err
}

// plan is what a request is given if it is asked for the first time.
func (d *Desk) plan(holder Holder, r messages.ControllerRequest) (ledger.ControllerRequest, error) {
	now := d.config.Options.Now().UTC().Truncate(time.Second)
	plan := ledger.ControllerRequest{ID: r.ID, Door: r.Door, Digest: digestOf(holder.Who(), r), Issued: now, Forget: now.Add(rememberFor)}
	for _, kind := range kindsOf(r.Door) {
		expires := now.Add(d.life(kind))
		if kind == messages.KindSession {
			if ends := r.Session.Expires.Truncate(time.Second); ends.Before(expires) {
				expires = ends
			}
			if !expires.After(now) {
				return plan, messages.Malformed.Because("the session has ended")
			}
		}
		if expires.Before(plan.Forget) {
			plan.Forget = expires
		}
		user := keyOf(r, kind)
		plan.Credentials = append(plan.Credentials, ledger.ControllerCredential{
			ID: string(kind) + "-" + user + "-" + nameOf(plan.Digest, now.Unix()), Kind: kind, User: user, Expires: expires})
	}
	return plan, nil
}

// life of a credential of a kind.
func (d *Desk) life(kind messages.ControllerKind) time.Duration {
	switch kind {
	case messages.KindExecutor:
		return min(ExecutorLife, d.config.Standing)
	case messages.KindSession:
		return SessionLife
	case messages.KindRequester:
		return RequesterLife
	}
	return d.config.Standing
}

// record has the ledger hold what is to be released, through the gate as it was seen.
func (d *Desk) record(ctx context.Context, seen messages.Instance, request ledger.ControllerRequest) error {
	ask := ledger.IssueToInstance{Endpoint: seen.Endpoint, Instance: seen.Name, Epoch: seen.Epoch, Principal: seen.Principal}
	for _, c := range request.Credentials {
		ask.Credentials = append(ask.Credentials, ledger.InstanceCredential{ID: c.ID, Holder: holderOf(seen.Principal, c.Kind),
			Endpoint: seen.Endpoint, Instance: seen.Name, Epoch: seen.Epoch, State: ledger.CredentialActive, Expires: c.Expires})
	}
	gate, err := d.issuer.Issue(ctx, ask)
	if err == nil && gate != seen {
		err = messages.InstanceSuperseded.Because("it was registered anew meanwhile")
	}
	return err
}

// release signs what stands in the ledger: exactly the credentials of the door.
func (d *Desk) release(holder Holder, r messages.ControllerRequest, gate messages.Instance, receipt messages.Secret, known ledger.Controller,
	request ledger.ControllerRequest) (messages.ControllerIssued, error) {
	issued := messages.ControllerIssued{Endpoint: gate.Endpoint, Instance: gate.Name, Epoch: gate.Epoch, Principal: gate.Principal,
		RequestID: r.ID, Issued: request.Issued}
	var kinds []messages.ControllerKind
	for _, c := range request.Credentials {
		user := broker.ControllerUser{Kind: c.Kind, Endpoint: gate.Endpoint, Instance: gate.Name, Epoch: gate.Epoch, User: c.User,
			Issued: request.Issued, Expires: c.Expires, Session: r.Session.ID, Behalf: holder.Who(), Target: r.Target.Principal, UID: r.Target.UID}
		if c.Kind == messages.KindServer {
			user.Commands = known.Commands // as the process was activated, whatever it says now
		}
		jwt, err := d.config.Sign(user)
		if err != nil {
			return messages.ControllerIssued{}, err
		}
		kinds = append(kinds, c.Kind)
		issued.Credentials = append(issued.Credentials, messages.ControllerCredential{Kind: c.Kind, User: c.User, JWT: jwt, Expires: c.Expires})
		if issued.Expires.IsZero() || c.Expires.Before(issued.Expires) {
			issued.Expires = c.Expires
		}
	}
	if !slices.Equal(kinds, kindsOf(r.Door)) {
		return messages.ControllerIssued{}, messages.InternalFault.Because("what was remembered is not what the door gives")
	}
	if r.Door == messages.DoorActivate || r.Door == messages.DoorRenew {
		issued.Receipt = receipt
	}
	return issued, nil
}
