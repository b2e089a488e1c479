package evict

import (
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

func TestEachTargetHasItsShare(t *testing.T) {
	const a, b, other = "aaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccc"
	alice := messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "x"}
	bob := messages.Principal{Owner: "u_aaaaaaaaaaaaaaaaaaaaaaaaaa", Actor: "y"}
	connection := func(cid uint64, p messages.Principal, uid string) messages.LiveConnection {
		return messages.LiveConnection{ConnectionRef: messages.ConnectionRef{ServerID: "N", ClientID: cid}, User: p.Name(), UID: uid}
	}
	dropped := map[messages.ConnectionRef]bool{{ServerID: "N", ClientID: 1}: true, {ServerID: "N", ClientID: 2}: true, {ServerID: "N", ClientID: 4}: true}
	o := Outcome{Evicted: 3, Eviction: messages.EvictionSwept, dropped: dropped, seen: []messages.LiveConnection{
		connection(1, alice, a), connection(2, alice, ""), connection(3, alice, a), connection(4, bob, b),
	}}
	for _, tc := range []struct {
		target  messages.Target
		evicted int
		vacuous bool
	}{
		{messages.Target{Principal: alice, UID: a}, 2, false},
		{messages.Target{Principal: alice, UID: other}, 1, false}, // who does not say his life is of every one
		{messages.Target{Principal: alice}, 2, false},
		{messages.Target{UID: b}, 1, false},
		{messages.Target{Principal: bob, UID: other}, 0, true},
		{messages.Target{User: bob.Name()}, 1, false},
	} {
		if got := o.Of(tc.target); got.Evicted != tc.evicted || got.Vacuous != tc.vacuous {
			t.Errorf("%+v: %d evicted, vacuous %v", tc.target, got.Evicted, got.Vacuous)
		}
		u := &Unproved{Live: o.seen}
		if got := u.Concerns(tc.target); got == tc.vacuous {
			t.Errorf("%+v: concerned %v", tc.target, got)
		}
	}
	o.blind = true
	if o.Of(messages.Target{Principal: bob, UID: other}).Vacuous {
		t.Error("what was not seen whole is called vacuous")
	}
}
