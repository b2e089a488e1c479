package broker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// target is the row that every attack is after: whose it is and what it says.
const (
	target = rows + "head.u_x.laptop"
	truth  = `{"state":"retired"}`
	lie    = `{"state":"active"}`
)

// attack is one way at the ledger that works within the ledger's own account. It
// returns once whatever it does has been done.
type attack struct {
	name string
	// try attacks as nc, whose account is given.
	try func(t *testing.T, space *natsdtest.Space, account trust.Account, nc *nats.Conn)
}

var forgeries = []attack{
	{"writes the row", func(t *testing.T, _ *natsdtest.Space, _ trust.Account, nc *nats.Conn) {
		publish(t, nc, target, "", lie)
	}},
	{"names the row as reply subject of an API request", func(t *testing.T, _ *natsdtest.Space, _ trust.Account, nc *nats.Conn) {
		publish(t, nc, "$JS.API.INFO", target, "")
	}},
	{"names the row as reply subject of a publish", func(t *testing.T, space *natsdtest.Space, account trust.Account, nc *nats.Conn) {
		own := streamOf(t, nc, jetstream.StreamConfig{Name: "own", Subjects: []string{"own.>"}})
		publish(t, nc, "own.x", target, "")
		awaitMessages(t, own, 1)
	}},
	{"aims an honest service at the row", func(t *testing.T, space *natsdtest.Space, account trust.Account, nc *nats.Conn) {
		// The service may answer requests, and is even forbidden to touch the ledger.
		service := natsdtest.Connect(t, space.URL(), space.Material, account, jwt.Permissions{
			Pub:  jwt.Permission{Deny: jwt.StringList{"$KV.>"}},
			Sub:  jwt.Permission{Allow: jwt.StringList{"echo"}},
			Resp: &jwt.ResponsePermission{MaxMsgs: 1},
		})
		answered := make(chan struct{}, 1) // one request, one answer
		if _, err := service.Subscribe("echo", func(m *nats.Msg) {
			_ = m.Respond([]byte(lie))
			_ = service.Flush()
			answered <- struct{}{}
		}); err != nil {
			t.Fatal(err)
		}
		if err := service.Flush(); err != nil {
			t.Fatal(err)
		}
		publish(t, nc, "echo", target, "")
		await(t, answered, "the service answers")
	}},
	{"republishes a stream of its own onto the row", func(t *testing.T, space *natsdtest.Space, account trust.Account, nc *nats.Conn) {
		own := streamOf(t, nc, jetstream.StreamConfig{Name: "forge", Subjects: []string{"forge.>"},
			RePublish: &jetstream.RePublish{Source: "forge.head", Destination: target}})
		publish(t, nc, "forge.head", "", lie)
		awaitMessages(t, own, 1)
	}},
	{"aims the control rail at the row", func(t *testing.T, space *natsdtest.Space, account trust.Account, nc *nats.Conn) {
		answered := serveRail(t, space, nil)
		publish(t, nc, "cotal.acme.rail.auth", target, "")
		if account == trust.DATA {
			return // it does not even get there: see TestOnlySvcReachesTheRail
		}
		await(t, answered, "the rail answers")
	}},
}

// publish sends and waits until the server has dealt with it.
func publish(t *testing.T, nc *nats.Conn, subject, reply, data string) {
	t.Helper()
	if err := nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// streamOf makes a stream with whatever rights the connection has.
func streamOf(t *testing.T, nc *nats.Conn, cfg jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.CreateStream(t.Context(), cfg)
	if err != nil {
		t.Logf("no stream of its own: %v", err)
		return nil
	}
	return s
}

func awaitMessages(t *testing.T, s jetstream.Stream, n uint64) {
	t.Helper()
	if s == nil {
		return
	}
	natsdtest.Eventually(t, "the stream holds what was published", func() error {
		info, err := s.Info(t.Context())
		if err == nil && info.State.Msgs < n {
			err = errors.New("not yet")
		}
		return err
	})
}

// serveRail answers on the rail as the service would, with words an attacker
// would like to see in a row.
func serveRail(t *testing.T, space *natsdtest.Space, hear func(*nats.Msg)) <-chan struct{} {
	t.Helper()
	server := natsdtest.Connect(t, space.URL(), space.Material, trust.CTRL, natsdtest.Everything())
	answered := make(chan struct{}, 16) // more than any test asks
	if _, err := server.Subscribe(trust.RailSubject(space.Name), func(m *nats.Msg) {
		if hear != nil {
			hear(m)
		}
		_ = m.Respond([]byte(lie))
		_ = server.Flush()
		answered <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	if err := server.Flush(); err != nil {
		t.Fatal(err)
	}
	return answered
}

func TestForgeriesReachTheLedgerFromNoOtherAccount(t *testing.T) {
	for _, a := range forgeries {
		t.Run(a.name, func(t *testing.T) {
			for _, account := range []trust.Account{trust.DATA, trust.SVC, trust.CTRL} {
				t.Run(string(account), func(t *testing.T) {
					space := natsdtest.NewSpace(t, "acme")
					ledger := authorityStream(t, space)
					honest := natsdtest.Connect(t, space.URL(), space.Material, trust.CTRL, natsdtest.Everything())
					publish(t, honest, target, "", truth)
					awaitMessages(t, ledger, 1)

					attacker := natsdtest.Connect(t, space.URL(), space.Material, account, natsdtest.Everything())
					a.try(t, space, account, attacker)

					// A write of our own after the attack: what the ledger holds once this one
					// is acknowledged holds whatever came before it.
					js, err := jetstream.New(honest)
					if err != nil {
						t.Fatal(err)
					}
					if account != trust.CTRL {
						ack, err := js.Publish(t.Context(), rows+"uid.fence", nil)
						if err != nil {
							t.Fatal(err)
						}
						row, err := ledger.GetLastMsgForSubject(t.Context(), target)
						if err != nil {
							t.Fatal(err)
						}
						if ack.Sequence != 2 || string(row.Data) != truth {
							t.Errorf("the row says %s at %d, the ledger is at %d", row.Data, row.Sequence, ack.Sequence)
						}
						return
					}
					// Within the ledger's account the same attack works: it is a real one, and
					// the account is what stops it.
					natsdtest.Eventually(t, "the attack succeeds in the ledger's own account", func() error {
						row, err := ledger.GetLastMsgForSubject(t.Context(), target)
						if err == nil && string(row.Data) == truth {
							err = errors.New("the row still stands")
						}
						return err
					})
				})
			}
		})
	}
}

// A stream that draws from the ledger would read every row.
func TestNoOtherAccountReadsTheLedgerBySourcing(t *testing.T) {
	for _, account := range []trust.Account{trust.DATA, trust.CTRL} {
		t.Run(string(account), func(t *testing.T) {
			space := natsdtest.NewSpace(t, "acme")
			authorityStream(t, space)
			honest := natsdtest.Connect(t, space.URL(), space.Material, trust.CTRL, natsdtest.Everything())
			publish(t, honest, target, "", truth)
			attacker := natsdtest.Connect(t, space.URL(), space.Material, account, natsdtest.Everything())
			drain := streamOf(t, attacker, jetstream.StreamConfig{Name: "drain", Sources: []*jetstream.StreamSource{{Name: stream}}})
			if account == trust.CTRL {
				awaitMessages(t, drain, 1)
				return
			}
			if drain == nil {
				return
			}
			natsdtest.Eventually(t, "the server finds nothing to draw from", func() error {
				info, err := drain.Info(t.Context())
				if err != nil {
					return err
				}
				if info.State.Msgs > 0 {
					t.Fatal("it has read the ledger")
				}
				if len(info.Sources) != 1 || info.Sources[0].Active >= 0 {
					return errors.New("not yet")
				}
				return nil
			})
		})
	}
}

func TestOnlySvcReachesTheRail(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	serveRail(t, space, nil)
	for account, want := range map[trust.Account]error{trust.SVC: nil, trust.DATA: nats.ErrNoResponders} {
		nc := natsdtest.Connect(t, space.URL(), space.Material, account, natsdtest.Everything())
		if _, err := nc.Request("cotal.acme.rail.auth.ping", nil, longEnough); !errors.Is(err, want) {
			t.Errorf("%s got %v, want %v", account, err, want)
		}
	}
}

// Who calls the rail is what the server says, not what the caller claims.
func TestTheServerNamesTheCallerOfTheRail(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	const header = "Nats-Request-Info"
	infos := make(chan []string, 1) // one request
	serveRail(t, space, func(m *nats.Msg) { infos <- m.Header.Values(header) })
	caller := natsdtest.Connect(t, space.URL(), space.Material, trust.SVC, natsdtest.Everything())
	forged := nats.NewMsg("cotal.acme.rail.auth")
	forged.Header.Set(header, `{"acc":"somebody else","user":"somebody else"}`)
	if _, err := caller.RequestMsg(forged, longEnough); err != nil {
		t.Fatal(err)
	}
	values := <-infos
	if len(values) != 1 {
		t.Fatalf("there are %d statements about the caller", len(values))
	}
	var info struct {
		Account string `json:"acc"`
		User    string `json:"user"`
		ID      uint64 `json:"id"`
	}
	if err := json.Unmarshal([]byte(values[0]), &info); err != nil {
		t.Fatal(err)
	}
	cid, err := caller.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	if info.Account != space.Material.Account(trust.SVC) || info.ID != cid || !strings.HasPrefix(info.User, "U") {
		t.Errorf("the server names %+v", info)
	}
}

// What accounts of others ask of the system reaches nobody, whatever their users
// may publish and however they came to publish it: directly, or by answering a
// request that named the question as its reply. CTRL, which is ours alone, shows
// that there would be an answer.
func TestNobodySeesConnectionsOfOthers(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	const question = "$SYS.REQ.ACCOUNT.PING.CONNZ"
	ours := natsdtest.Connect(t, space.URL(), space.Material, trust.CTRL, natsdtest.Everything())
	if _, err := ours.Request(question, nil, longEnough); err != nil {
		t.Fatalf("nothing would be there to hide: %v", err)
	}
	for _, account := range []trust.Account{trust.DATA, trust.SVC} {
		nc := natsdtest.Connect(t, space.URL(), space.Material, account, natsdtest.Everything())
		if _, err := nc.Request(question, nil, silentFor); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s asks itself: %v", account, err)
		}
		serving := natsdtest.Everything()
		serving.Pub.Deny.Add("$SYS.>")
		serving.Resp = &jwt.ResponsePermission{MaxMsgs: 10, Expires: time.Minute}
		server := natsdtest.Connect(t, space.URL(), space.Material, account, serving)
		requests, err := server.SubscribeSync("demo.x")
		if err != nil {
			t.Fatal(err)
		}
		answers, err := server.SubscribeSync(server.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest("demo.x", question, nil); err != nil {
			t.Fatal(err)
		}
		m, err := requests.NextMsg(longEnough)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.PublishMsg(&nats.Msg{Subject: m.Reply, Reply: answers.Subject}); err != nil {
			t.Fatal(err)
		}
		if m, err := answers.NextMsg(silentFor); err == nil && m.Header.Get("Status") != "503" {
			t.Errorf("%s is answered %.80s", account, m.Data)
		}
	}
}

// The sentinel alone is powerless: it is nobody until the callout has answered.
func TestTheSentinelCannotConnectWithoutAnAnswer(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	nc, err := knock(space)
	if err == nil {
		nc.Close()
		t.Fatal("it came in with nobody to answer")
	}
	if broker.IsAway(err) {
		t.Errorf("it was not refused: %v", err)
	}
}
