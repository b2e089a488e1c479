package e2e_test

import (
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/test/world"
)

// TestStory is the main job: two people log in and talk, neither hears the other's
// replies, and one whose grant is revoked is not let in again.
func TestStory(t *testing.T) {
	w := world.Open(t)
	alice, bob := w.Person("alice", "laptop", "demo.>"), w.Person("bob", "phone", "demo.>")
	a, b := alice.Connect(), bob.Connect()

	heard, err := b.SubscribeSync("demo.hello")
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = a.Publish("demo.hello", []byte("hi"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := heard.NextMsg(world.Patience); err != nil || string(m.Data) != "hi" {
		t.Fatalf("bob heard %v, %v", m, err)
	}

	violation := make(chan error, 1)
	b.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violation <- err })
	if _, err := b.Subscribe("_INBOX_"+alice.Name()+".>", func(*nats.Msg) { t.Error("bob hears alice's inbox") }); err != nil {
		t.Fatal(err)
	}
	<-violation

	if status := w.Call("DELETE", alice.Path(), nil, nil); status != http.StatusOK {
		t.Fatalf("revoke: %d", status)
	}
	if nc, err := alice.Dial(); !world.Refused(err) {
		nc.Close()
		t.Fatalf("the revoked one: %v", err)
	}
	var denials struct {
		Denials []struct{ Kind, Reason, Principal string }
	}
	w.Poll("the denial to be noted", func() bool { // after it was answered
		w.Call("GET", "/v1/denials", nil, &denials)
		return len(denials.Denials) > 0
	})
	if len(denials.Denials) != 1 || denials.Denials[0].Kind != "denied" || denials.Denials[0].Principal != alice.Grant.Owner+".laptop" {
		t.Fatalf("denials: %+v", denials)
	}
}
