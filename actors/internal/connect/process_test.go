package connect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// serving is a bearer of a process of an instance, and all records under which it is
// admitted.
func serving() (identity.Bearer, messages.Authority, messages.ProcessRead) {
	b, a := standing()
	b.Process = identity.Process{Endpoint: "svc_a", Instance: uid, Epoch: 4, CredentialID: "own-4"}
	return b, a, messages.ProcessRead{
		HasGate: true,
		Gate: messages.Instance{Endpoint: "svc_a", Name: uid, State: messages.InstanceOpen, Generation: 5, Epoch: 4, RegistrationRevision: 9,
			Principal: b.Principal},
		HasCredential: true,
		Credential: messages.InstanceCredential{ID: "own-4", Holder: b.Principal, Endpoint: "svc_a", Instance: uid, Epoch: 4, Active: true,
			Expires: now.Add(time.Hour)},
	}
}

// processFaults are one each, in the order in which they are found.
var processFaults = []struct {
	what string
	make func(*identity.Bearer, *messages.ProcessRead)
	want messages.Error
}{
	{"no gate", func(_ *identity.Bearer, p *messages.ProcessRead) { p.HasGate, p.Gate = false, messages.Instance{} }, messages.InstanceNotFound},
	{"the gate of another endpoint", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Gate.Endpoint = "svc_b" }, messages.InternalFault},
	{"the gate of another instance", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Gate.Name = root }, messages.InternalFault},
	{"a foreign instance", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Gate.Principal.Actor = "x" }, messages.InstanceForeign},
	{"a process before", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Gate.Epoch++ }, messages.InstanceSuperseded},
	{"a process that never was", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Gate.Epoch-- }, messages.InstanceSuperseded},
	{"a frozen gate", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Gate.State = messages.InstanceFrozen }, messages.InstanceNotOpen},
	{"a gate in no known state", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Gate.State = "" }, messages.InstanceNotOpen},
	{"nothing issued", func(_ *identity.Bearer, p *messages.ProcessRead) {
		p.HasCredential, p.Credential = false, messages.InstanceCredential{}
	}, messages.CredentialGone},
	{"a record that was not read", func(_ *identity.Bearer, p *messages.ProcessRead) { p.HasCredential = false }, messages.CredentialGone},
	{"revoked", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Credential.Active = false }, messages.CredentialGone},
	{"another credential", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Credential.ID = "own-5" }, messages.CredentialGone},
	{"issued to a process before", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Credential.Epoch-- }, messages.CredentialGone},
	{"issued to another instance", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Credential.Instance = root }, messages.CredentialGone},
	{"issued to another endpoint", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Credential.Endpoint = "svc_b" }, messages.CredentialGone},
	{"issued to another holder", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Credential.Holder.Actor = "x" }, messages.CredentialGone},
	{"one that ends now", func(_ *identity.Bearer, p *messages.ProcessRead) { p.Credential.Expires = now }, messages.CredentialExpired},
}

func TestAProcessIsJudgedByItsOwnRecords(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	b, a, p := serving()
	admission, err := judge.DecideProcess(b, a, p, now)
	must(t, err)
	if admission.Principal != b.Principal || !admission.Expires.Equal(b.Expires) {
		t.Errorf("admitted as %+v", admission)
	}
	p.Credential.Expires = now.Add(time.Minute + time.Second/2)
	if admission, err = judge.DecideProcess(b, a, p, now); err != nil || !admission.Expires.Equal(now.Add(time.Minute)) {
		t.Errorf("it outlives what it was issued: %+v, %v", admission, err)
	}
	for _, f := range processFaults {
		b, a, p := serving()
		f.make(&b, &p)
		admission, err := judge.DecideProcess(b, a, p, now)
		if messages.Describe(err) != f.want || admission.UID != "" {
			t.Errorf("%s: got %+v, %v, want %v", f.what, admission, err, f.want)
		}
		if told := connect.KindOf(err) == messages.Denied; told != (f.want != messages.InternalFault) {
			t.Errorf("%s: told %v", f.what, told)
		}
	}
}

// All that holds for the principal's own bearer holds for one of a process too, and is
// told first.
func TestAProcessIsItsPrincipalToo(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	for _, f := range faults {
		b, a, p := serving()
		f.make(&b, &a)
		if _, err := judge.DecideProcess(b, a, p, now); messages.Describe(err) != f.want {
			t.Errorf("%s: got %v, want %v", f.what, err, f.want)
		}
		p.Gate.State = messages.InstanceFrozen
		_, err := judge.DecideProcess(b, a, p, now)
		switch messages.Describe(err) {
		case f.want:
		case messages.InstanceNotOpen: // judged before the profile and what is minted
			if f.want != messages.ProfileUnknown && f.want != messages.RowCorrupt && f.want != messages.ProofExpired {
				t.Errorf("%s: got %v before %v", f.what, err, f.want)
			}
		default:
			t.Errorf("%s: got %v", f.what, err)
		}
	}
}

// A process may be found as the service that it is, and as no other; its principal not.
func TestAProcessMayBeFound(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	b, a, p := serving()
	admitted, err := judge.DecideProcess(b, a, p, now)
	if err != nil {
		t.Fatal(err)
	}
	name := p.Gate.Endpoint
	want := []string{"$SRV.INFO", "$SRV.INFO." + name, "$SRV.INFO." + name + ".*", "$SRV.PING", "$SRV.PING." + name, "$SRV.PING." + name + ".*",
		"$SRV.STATS", "$SRV.STATS." + name, "$SRV.STATS." + name + ".*"}
	found := func(a connect.Admission) []string {
		var all []string
		for _, subject := range a.Permissions.Sub.Allow {
			if strings.HasPrefix(subject, "$SRV") {
				all = append(all, subject)
			}
		}
		slices.Sort(all)
		return all
	}
	if got := found(admitted); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, deeper := range []string{"$SRV.INFO." + name + ".*.>", "$SRV.PING." + name + ".*.>", "$SRV.STATS." + name + ".*.>"} {
		if !slices.Contains(admitted.Permissions.Sub.Deny, deeper) {
			t.Errorf("%s is not denied", deeper)
		}
	}
	b.Process = identity.Process{}
	if admitted, err = judge.Decide(b, a, now); err != nil || len(found(admitted)) != 0 {
		t.Errorf("its principal: %q, %v", found(admitted), err)
	}
}

// Whoever forgets the records of a process lets nobody in, and a bearer without one is
// not helped by those of any.
func TestAProcessIsNeverJudgedWithoutItsRecords(t *testing.T) {
	judge := connect.NewJudge(profiles(t))
	b, a, p := serving()
	if _, err := judge.Decide(b, a, now); !errors.Is(err, messages.InternalFault) {
		t.Errorf("without them: %v", err)
	}
	b.Process = identity.Process{}
	if _, err := judge.DecideProcess(b, a, p, now); !errors.Is(err, messages.InternalFault) {
		t.Errorf("with those of another: %v", err)
	}
}
