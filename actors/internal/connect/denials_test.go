package connect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/messages"
)

func TestNewDenial(t *testing.T) {
	nobody := messages.Principal{}
	path := laptop.Owner + "/" + laptop.Actor
	for _, c := range []struct {
		why    error
		who    messages.Principal
		kind   messages.DecisionKind
		remedy string
	}{
		{messages.NotGranted, laptop, messages.Denied, "the principal has no live grant; next: authplane grant " + laptop.Owner + "/laptop"},
		{messages.NotGranted, nobody, messages.Denied, "the principal has no live grant; next: authplane grant <owner>/<actor>"},
		{fmt.Errorf("decide: %w", messages.ScopeExceeded.Because("scope x")), laptop, messages.Denied,
			"the grant, or one of its parents, was narrowed; next: authplane show " + path},
		{messages.IncarnationStanding, laptop, messages.Unanswered, "retire the former incarnation, then grant again; next: authplane retire " + path},
		{messages.GrantStands, laptop, messages.Unanswered, "edit it, or revoke it first; next: authplane show " + path},
		{messages.ProofExpired, nobody, messages.Denied, "the client must exchange again; next: authplane help token"},
		{messages.TooLate, nobody, messages.Unanswered, "the request could no longer be answered in time"},
		{messages.Unproved, laptop, messages.Unanswered, "no leader, no quorum beat yet, or the reader is restarting; next: authplane status"},
		{messages.RequestForged.Because("x"), nobody, messages.Unanswered,
			"its signature, issuer or sealing key does not hold, or the server is not on the list; next: authplane status"},
		{fmt.Errorf("anything"), nobody, messages.Unanswered, "the log line with this request id has the cause; next: authplane status"},
	} {
		got := connect.NewDenial("r1", c.who, c.why, now)
		entry := messages.Describe(c.why)
		want := messages.Denial{ID: "r1", At: now, Kind: c.kind, Code: entry.Code, Reason: entry.Reason, Principal: c.who.String(), Remedy: c.remedy}
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// A denial does not repeat what the case said of itself: that may be a client's text.
func TestDenialsKeepNoDetail(t *testing.T) {
	d := connect.NewDenial("r1", laptop, messages.ProofInvalid.Because("eyJhbGciOi.secret"), now)
	text, err := json.Marshal(d)
	must(t, err)
	if strings.Contains(string(text), "secret") {
		t.Fatalf("kept %s", text)
	}
}

func TestDenialsKeepTheLast(t *testing.T) {
	var d connect.Denials
	if len(d.List()) != 0 {
		t.Fatal("an empty keeper lists something")
	}
	total := 2*connect.MaxDenials + 7
	for i := range total {
		d.Record(messages.Denial{ID: fmt.Sprint(i)})
		kept := min(i+1, connect.MaxDenials)
		if i%97 != 0 && i != total-1 {
			continue
		}
		list := d.List()
		if len(list) != kept || list[0].ID != fmt.Sprint(i) || list[kept-1].ID != fmt.Sprint(i-kept+1) {
			t.Fatalf("after %d: %d kept, %s first, %s last", i, len(list), list[0].ID, list[len(list)-1].ID)
		}
	}
	if _, found := d.Find(fmt.Sprint(total - connect.MaxDenials - 1)); found {
		t.Error("one that made room is found")
	}
	for _, i := range []int{total - 1, total - connect.MaxDenials} {
		if got, found := d.Find(fmt.Sprint(i)); !found || got.ID != fmt.Sprint(i) {
			t.Errorf("%d is not found", i)
		}
	}
	list := d.List()
	list[0].ID = "spoiled"
	if _, found := d.Find("spoiled"); found {
		t.Error("the list is the keeper's own")
	}
}

func TestDenialsConcurrently(t *testing.T) {
	var d connect.Denials
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for i := range 500 {
				d.Record(messages.Denial{ID: fmt.Sprint(i)})
				d.Find("7")
				d.List()
			}
		})
	}
	writers.Wait()
	if n := len(d.List()); n != connect.MaxDenials {
		t.Fatalf("%d are kept", n)
	}
}
