package runs

import (
	"bytes"
	"context"
	"time"

	"github.com/cotal-ai/authplane/actors/client"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/run"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/operations"
	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/supervisor"
)

// readWithin is how long the reader is asked, over its restart.
const readWithin = 10 * time.Second

// Config is what runs need of their space.
type Config struct {
	Calls    *operations.Calls
	Material *trust.Material
	// Keyring verifies bearers.
	Keyring *identity.Keyring
	// Stream says which authority stream, and which process this is; the records stand
	// beside it. Remembered is which life of the records is ours.
	Stream     stream.Config
	Remembered func() stream.Installation
	// Reader is the path of the actor that reads the ledger, Issuer that of the one that
	// recognizes controllers, and Observer that of the observer; empty without one.
	Reader, Issuer, Observer string
	// Standing is the longest life of what is issued to a driver, in whole seconds from
	// run.ShortestLife to run.LongestLife.
	Standing time.Duration
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Runs answers for one space, over all lives of its actors.
type Runs struct {
	config       Config
	certificates *run.Certificates
	lanes        *stream.Lanes // of the records stream
}

// New takes what runs need.
func New(config Config) (*Runs, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if s := config.Standing; s < run.ShortestLife || s > run.LongestLife || s%time.Second != 0 {
		return nil, messages.Malformed.Because("drivers live for whole seconds from %s to %s, not %s", run.ShortestLife, run.LongestLife, s)
	}
	certificates, err := run.NewCertificates(config.Stream.Space, config.Material.Signer(config.Material.Signing[trust.DATA].Public))
	if err != nil {
		return nil, err
	}
	return &Runs{config: config, certificates: certificates, lanes: stream.NewLanes(stream.MaxLanes)}, nil
}

// offline is a desk that can judge what takes no reading.
func (r *Runs) offline() *run.Desk {
	return &run.Desk{Space: r.config.Stream.Space, Certificates: r.certificates, Replicas: r.config.Stream.Replicas, Now: r.config.Now}
}

// at is the desk of a call; by is nobody where it is asked by no controller.
func (r *Runs) at(site operations.Site, by Asker) *run.Desk {
	d := r.offline()
	d.Records = ledger.NewStore(stream.New(site.Conn.NATS(), r.config.Stream.Records(), r.lanes), ledger.DefaultPatience())
	d.Authority = authority{site.Ref(r.config.Reader)}
	d.Receipts = r.receipts(by, site.Ref)
	if r.config.Observer != "" {
		d.Observed = observer{site.Ref(r.config.Observer)}
	}
	return d
}

// records has a call of its own over the records stream answer ask.
func records[A any](ctx context.Context, r *Runs, tree *supervisor.Tree, by Asker, kind, on string, role broker.Role, ask any,
	do func(context.Context, *run.Desk) (A, error)) (A, error) {
	return operations.Perform[A](ctx, r.config.Calls, tree, operations.Job{
		Kind: kind, On: on, Role: role, Ask: ask,
		Prove: func(ctx context.Context, conn *broker.Conn) error {
			return stream.Prove(ctx, conn.NATS(), r.config.Stream.Records(), r.config.Remembered())
		},
		Do: func(ctx context.Context, at operations.Site) (any, error) { return do(ctx, r.at(at, by)) },
	})
}

// Admit answers messages.AdmitRun. Besides its refusals it, and every other method here
// that asks somebody, fails as operations.Perform does.
func (r *Runs) Admit(ctx context.Context, tree *supervisor.Tree, by Asker, ask messages.AdmitRun) (messages.RunAdmitted, error) {
	ask.Request = copied(ask.Request)
	if err := r.recognize(ctx, tree, by, ask.Controller); err != nil {
		return messages.RunAdmitted{}, err
	}
	if err := r.offline().CheckAdmission(ask); err != nil {
		return messages.RunAdmitted{}, err
	}
	role := broker.RunAdmitter(r.config.Stream.Instance, ask.Controller.Endpoint, ask.Run, run.RequestID(r.config.Stream.Space, ask.Request))
	return records(ctx, r, tree, by, "run-admission", ask.Run, role, ask, func(ctx context.Context, d *run.Desk) (messages.RunAdmitted, error) {
		return d.Admit(ctx, ask)
	})
}

// Revoke answers messages.RevokeRun.
func (r *Runs) Revoke(ctx context.Context, tree *supervisor.Tree, ask messages.RevokeRun) (messages.RunRevocation, error) {
	if err := run.CheckRevocation(ask); err != nil {
		return messages.RunRevocation{}, err
	}
	role := broker.RunRevoker(r.config.Stream.Instance, ask.Endpoint, ask.Run)
	return records(ctx, r, tree, Asker{}, "run-revocation", ask.Run, role, ask, func(ctx context.Context, d *run.Desk) (messages.RunRevocation, error) {
		return d.Revoke(ctx, ask)
	})
}

// RevokeOwn answers messages.RevokeControllerRun, on behalf of holder, who is by.
func (r *Runs) RevokeOwn(ctx context.Context, tree *supervisor.Tree, by Asker, holder messages.Principal, ask messages.RevokeControllerRun) (messages.RunRevocation, error) {
	if err := r.recognize(ctx, tree, by, ask.Controller); err != nil {
		return messages.RunRevocation{}, err
	}
	if err := run.CheckRevocation(messages.RevokeRun{Endpoint: ask.Controller.Endpoint, Run: ask.Run, Reason: ask.Reason, By: holder}); err != nil {
		return messages.RunRevocation{}, err
	}
	role := broker.RunRevoker(r.config.Stream.Instance, ask.Controller.Endpoint, ask.Run)
	return records(ctx, r, tree, by, "run-revocation", ask.Run, role, ask, func(ctx context.Context, d *run.Desk) (messages.RunRevocation, error) {
		return d.RevokeOwn(ctx, holder, ask)
	})
}

// List answers messages.ListRuns.
func (r *Runs) List(ctx context.Context, tree *supervisor.Tree, ask messages.ListRuns) (messages.Runs, error) {
	return records(ctx, r, tree, Asker{}, "run-listing", "the space", broker.RunReader(r.config.Stream.Instance), ask, func(ctx context.Context, d *run.Desk) (messages.Runs, error) {
		return d.List(ctx, ask)
	})
}

// Show answers messages.ShowRun.
func (r *Runs) Show(ctx context.Context, tree *supervisor.Tree, ask messages.ShowRun) (messages.Run, error) {
	if err := run.CheckName(ask.Endpoint, ask.Run); err != nil {
		return messages.Run{}, err
	}
	return records(ctx, r, tree, Asker{}, "run-listing", ask.Run, broker.RunReader(r.config.Stream.Instance), ask, func(ctx context.Context, d *run.Desk) (messages.Run, error) {
		return d.Show(ctx, ask)
	})
}

// Bind answers messages.BindRunCaller. Whether the caller is still who the bearer says is
// judged whenever he makes a request.
func (r *Runs) Bind(ask messages.BindRunCaller) (messages.RunCallerBound, error) {
	bearer, err := r.config.Keyring.Verify(ask.Bearer.Reveal(), r.config.Now())
	if err != nil {
		return messages.RunCallerBound{}, err
	}
	token, err := r.certificates.Sign(run.Caller{Principal: bearer.Principal, UID: bearer.UID, Key: ask.Key, Expires: bearer.Expires})
	return messages.RunCallerBound{Certificate: token, Expires: bearer.Expires}, err
}

// copied shares nothing with the asker.
func copied(r messages.RunRequest) messages.RunRequest {
	r.Payload = bytes.Clone(r.Payload)
	return r
}

// authority asks the reader.
type authority struct{ reader supervisor.Ref }

// Instance is run.Authority.
func (a authority) Instance(ctx context.Context, ask messages.ReadInstance) (messages.Instance, error) {
	return client.Repeat[messages.Instance](ctx, a.reader, ask, readWithin, client.Passes)
}

// Authority is run.Authority.
func (a authority) Authority(ctx context.Context, ask messages.ReadAuthority) (messages.Authority, error) {
	return client.Repeat[messages.Authority](ctx, a.reader, ask, readWithin, client.Passes)
}

// observer asks whoever observes requests.
type observer struct{ ref supervisor.Ref }

// Await is run.Observed.
func (o observer) Await(ctx context.Context, ask messages.AwaitRequest) error {
	_, err := client.Repeat[messages.RequestSeen](ctx, o.ref, ask, readWithin, client.Passes)
	return err
}
