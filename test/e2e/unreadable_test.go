package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
	"github.com/cotal-ai/authplane/test/world"
)

// TestOneUnreadableRow has one machine's grant written over under a running space:
// its siblings end with their parent all the same, the others are still listed, and
// the status names the row until it can be read again.
func TestOneUnreadableRow(t *testing.T) {
	w := world.Open(t)
	parent := w.Grant("alice", "laptop", "demo.>")
	path := func(actor string) string { return "/v1/grants/" + parent.Owner + "/" + actor }
	for _, actor := range []string{"a", "b", "c"} {
		machine := map[string]any{"owner": parent.Owner, "actor": actor, "kind": "managed", "parent": parent.Owner + ".laptop",
			"publish": []string{"demo.x"}, "subscribe": []string{}, "scope": []string{}}
		if status := w.Call("POST", "/v1/grants", machine, nil); status != http.StatusCreated {
			t.Fatalf("grant %s: %d", actor, status)
		}
	}
	key := "grant." + parent.Owner + ".b"
	subject := "$KV.cotal_authority_main." + key
	js, err := jetstream.New(owner(w))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(w.Context(), "KV_cotal_authority_main")
	if err != nil {
		t.Fatal(err)
	}
	sound, err := stream.GetLastMsgForSubject(w.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	write := func(value []byte) {
		if _, err := js.Publish(w.Context(), subject, value); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("junk"))

	var refused struct {
		Error struct{ Reason, Message string }
	}
	status := w.Call("DELETE", path("laptop"), nil, &refused)
	if status != http.StatusInternalServerError || refused.Error.Reason != messages.RowCorrupt.Reason || refused.Error.Message != messages.RowCorrupt.Message {
		t.Errorf("revoke: %d %+v", status, refused)
	}
	if problems := w.Space.Status().Problems; len(problems) != 1 || !strings.Contains(problems[0], key) {
		t.Errorf("the status shows %q", problems)
	}
	var list struct {
		Grants     []struct{ Actor, State string }
		Unreadable []string
	}
	if status := w.Call("GET", "/v1/grants", nil, &list); status != http.StatusOK || len(list.Grants) != 3 || !slices.Equal(list.Unreadable, []string{key}) {
		t.Errorf("list: %d %+v", status, list)
	}
	for _, g := range list.Grants {
		if g.State != string(messages.GrantRevoked) {
			t.Errorf("%s is %s", g.Actor, g.State)
		}
	}

	write(sound.Data)
	if status := w.Call("DELETE", path("laptop"), nil, nil); status != http.StatusOK {
		t.Errorf("revoke, once it can be read: %d", status)
	}
	var last struct{ State string }
	if status := w.Call("GET", path("b"), nil, &last); status != http.StatusOK || last.State != string(messages.GrantRevoked) {
		t.Errorf("b: %d %s", status, last.State)
	}
	if problems := w.Space.Status().Problems; len(problems) != 0 {
		t.Errorf("the status still shows %q", problems)
	}
}
