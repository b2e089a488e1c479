package claim

import (
	"strings"
	"sync"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// View is what an operator sees of the plane. It outlives the actor's lives, and is
// safe for concurrent use; the zero value is a plane that opens.
type View struct {
	mu      sync.Mutex
	status  messages.PlaneStatus
	awaited messages.Claim // that stands in the way; zero for none
}

// Status is how this process stands to the plane now.
func (v *View) Status() messages.PlaneStatus {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.status.State == "" {
		return messages.PlaneStatus{State: messages.PlaneOpening}
	}
	return v.status
}

// Awaited names the process whose claim stands in this one's way, as it was read
// last, and the connections that the claim names; nobody when none does.
func (v *View) Awaited() (instance string, connections []messages.ConnectionRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.awaited.State != messages.ClaimHeld {
		return "", nil
	}
	return instanceOf(v.awaited), connectionsOf(v.awaited)
}

func (v *View) show(s messages.PlaneStatus, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.State == v.status.State {
		s.Since = v.status.Since
	} else {
		s.Since = now
	}
	v.status, v.awaited = s, messages.Claim{}
}

// won shows a claim of ours.
func (v *View) won(c messages.Claim) {
	v.show(messages.PlaneStatus{State: messages.PlaneActive, HeldByUs: true,
		Holder: instanceOf(c), Generation: c.Generation}, time.Now())
}

// waits shows what is waited for.
func (v *View) waits(w messages.Awaited) {
	v.show(messages.PlaneStatus{State: messages.PlaneStandby, Holder: instanceOf(w.Holder),
		Generation: w.Holder.Generation, WaitingFor: w.Text, Next: w.Next}, time.Now())
	v.mu.Lock()
	defer v.mu.Unlock()
	v.awaited = w.Holder
}

// refused shows a refusal that waiting does not mend by itself.
func (v *View) refused(err error) {
	entry := messages.Describe(err)
	v.show(messages.PlaneStatus{State: messages.PlaneStandby, WaitingFor: err.Error(), Next: entry.Next}, time.Now())
}

// fenced shows why the plane is not used just now.
func (v *View) fenced(reason error) {
	s := v.Status()
	s.State, s.HeldByUs, s.Next = messages.PlaneFenced, false, "authplane tree"
	if reason != nil {
		s.WaitingFor = "this process takes it back, unless another has, after: " + reason.Error()
	}
	v.show(s, time.Now())
}

// reopened shows that the life which held the plane is over without a word.
func (v *View) reopened() {
	if v.Status().State == messages.PlaneActive {
		v.fenced(nil)
	}
}

func (v *View) closed() {
	v.show(messages.PlaneStatus{State: messages.PlaneClosed}, time.Now())
}

// The claim's host names the instance, so that an operator can tell which process
// it is, and then the machine.
const hostSeparator = "@"

// hostOf is what this process writes as the claim's host.
func hostOf(instance, machine string) string { return instance + hostSeparator + machine }

func connectionsOf(c messages.Claim) []messages.ConnectionRef {
	return []messages.ConnectionRef{
		{ServerID: c.Ledger.ServerID, ClientID: c.Ledger.ClientID},
		{ServerID: c.Records.ServerID, ClientID: c.Records.ClientID},
	}
}

func instanceOf(c messages.Claim) string {
	instance, _, _ := strings.Cut(c.Host, hostSeparator)
	return instance
}
