package ledger

import (
	"cmp"
	"context"
	"sync"

	"github.com/cotal-ai/authplane/messages"
)

// Process reads the gate of an instance, and a credential that was issued to one of its
// processes. Each is one read of the leader, begun after the call; together they are no
// snapshot, which is why a decision compares their epochs. A failed read fails the
// whole, as in Authority.
func (r *Reader) Process(ctx context.Context, ask messages.ReadProcess) (messages.ProcessRead, error) {
	if err := CheckInstance(ask.Endpoint, ask.Instance); err != nil {
		return messages.ProcessRead{}, err
	}
	if !isToken(ask.CredentialID) {
		return messages.ProcessRead{}, messages.Malformed.Because("a credential is one token of [A-Za-z0-9_-]")
	}
	var answer messages.ProcessRead
	gateCtx, drop := context.WithCancel(ctx)
	defer drop()
	var reading sync.WaitGroup
	var gateErr error
	reading.Go(func() { answer.Gate, answer.HasGate, gateErr = readGate(gateCtx, r.source, ask.Endpoint, ask.Instance) })
	var err error
	answer.Credential, answer.HasCredential, err = readIssued(ctx, r.source, ask)
	if err != nil {
		drop()
	}
	reading.Wait()
	if err = cmp.Or(err, gateErr); err != nil {
		return messages.ProcessRead{}, err
	}
	return answer, nil
}

func readGate(ctx context.Context, source Source, endpoint, instance string) (messages.Instance, bool, error) {
	row, found, err := source.Get(ctx, InstanceKey(endpoint, instance))
	if err != nil || !found {
		return messages.Instance{}, false, err
	}
	gate, err := DecodeInstance(row)
	return gate, err == nil, err
}

func readIssued(ctx context.Context, source Source, ask messages.ReadProcess) (messages.InstanceCredential, bool, error) {
	row, found, err := source.Get(ctx, InstanceCredentialKey(ask.Endpoint, ask.Instance, ask.CredentialID))
	if err != nil || !found {
		return messages.InstanceCredential{}, false, err
	}
	c, err := DecodeInstanceCredential(row)
	if err != nil {
		return messages.InstanceCredential{}, false, err
	}
	return messages.InstanceCredential{ID: c.ID, Holder: c.Holder, Endpoint: c.Endpoint, Instance: c.Instance, Epoch: c.Epoch,
		Active: c.State == CredentialActive, Expires: c.Expires}, true, nil
}
