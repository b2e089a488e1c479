package sweep_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// However somebody came in, the list of connections names them, and a kick ends it.
func TestEveryDoorIsListedAndKicked(t *testing.T) {
	t.Parallel()
	dir := natsdtest.Chain(t, "acme")
	m := natsdtest.Load(t, dir, "acme")
	ports := freePorts(t, 3)
	configure(t, dir, "websocket { listen: '127.0.0.1:%d', no_tls: true }\nmqtt { listen: '127.0.0.1:%d' }\nleafnodes { listen: '127.0.0.1:%d' }\ndefault_sentinel: %s",
		ports[0], ports[1], ports[2], openSentinel(t, m))
	broker := natsdtest.Start(t, natsd.Config{Dir: dir})
	s := &stage{TB: t, dir: dir, url: broker.URL(), m: m}
	s.admitAll()
	who := "u_x.Laptop/" + uidA
	s.principal(who)
	s.dialAt(fmt.Sprintf("ws://127.0.0.1:%d", ports[0]), who)
	device := mqttConnect(t, ports[1], who)
	leaf := leafServer(t, server.LeafNodeOpts{ReconnectInterval: time.Hour, Remotes: []*server.RemoteLeafOpts{{
		URLs:        []*url.URL{{Scheme: "nats-leaf", User: url.User(who), Host: fmt.Sprintf("127.0.0.1:%d", ports[2])}},
		Credentials: trust.SentinelCreds(dir)}}})

	o := s.observer()
	target := messages.Target{Principal: messages.Principal{Owner: "u_x", Actor: "Laptop"}, UID: uidA}
	var all []messages.LiveConnection
	natsdtest.Eventually(t, "all four are listed", func() error {
		if all = s.sweep(o, trust.DATA, target).Connections; len(all) != 4 {
			return fmt.Errorf("got %+v", all)
		}
		return nil
	})
	for _, c := range all {
		if c.User != "u_x-Laptop" || c.UID != uidA {
			t.Errorf("got %+v", c)
		}
	}
	for _, r := range s.kick(refs(all)) {
		if r.Outcome != messages.KickDone {
			t.Errorf("got %+v", r)
		}
	}
	if left := s.sure(o, trust.DATA); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	must(t, device.SetReadDeadline(time.Now().Add(longEnough)))
	if _, err := device.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the device was not dropped: %v", err)
	}
	natsdtest.Eventually(t, "the leaf server has no link", func() error {
		if n := leaf.NumLeafNodes(); n > 0 {
			return fmt.Errorf("%d links", n)
		}
		return nil
	})
}

// A link that a server of ours opened to another one is nobody's, and no reason to
// doubt who is gone.
func TestALinkOfTheServersOwnIsNobodys(t *testing.T) {
	t.Parallel()
	dir := natsdtest.Chain(t, "acme")
	m := natsdtest.Load(t, dir, "acme")
	port := freePorts(t, 1)[0]
	leafServer(t, server.LeafNodeOpts{Host: "127.0.0.1", Port: port})
	configure(t, dir, "leafnodes { remotes: [ { url: 'nats-leaf://127.0.0.1:%d', account: %s } ] }", port, m.Account(trust.DATA))
	broker := natsdtest.Start(t, natsd.Config{Dir: dir})
	s := &stage{TB: t, dir: dir, url: broker.URL(), m: m}
	o := s.observer()
	natsdtest.Eventually(t, "the link is listed", func() error {
		if got := s.sure(o, trust.DATA); len(got) != 1 || got[0].User != "" {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	if got := s.sure(o, trust.DATA, messages.Target{Principal: messages.Principal{Owner: "u_x", Actor: "Laptop"}}); len(got) > 0 {
		t.Errorf("it is a principal's: %+v", got)
	}
}

// configure adds to the servers' configuration.
func configure(t *testing.T, dir, format string, args ...any) {
	t.Helper()
	f, err := os.OpenFile(trust.ServerConf(dir), os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = fmt.Fprintf(f, "\n"+strings.ReplaceAll(format, "'", `"`)+"\n", args...)
	must(t, err)
	must(t, f.Close())
}

// openSentinel is a sentinel that needs no signature: whoever speaks MQTT cannot
// sign, and has no room for a sentinel beside the token.
func openSentinel(t *testing.T, m *trust.Material) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	must(t, err)
	public, err := pair.PublicKey()
	must(t, err)
	claims := jwt.NewUserClaims(public)
	claims.Name, claims.BearerToken, claims.IssuerAccount = "open-sentinel", true, m.Account(trust.AUTH)
	claims.Pub.Deny, claims.Sub.Deny = jwt.StringList{">"}, jwt.StringList{">"}
	token, err := claims.Encode(m.Signer(m.Signing[trust.AUTH].Public))
	must(t, err)
	return token
}

// dialAt connects as a client does at one door.
func (s *stage) dialAt(url, who string, opts ...nats.Option) {
	s.Helper()
	at := *s
	at.url = url
	at.principal(who, opts...)
}

// mqttConnect connects as a device that speaks MQTT does.
func mqttConnect(t *testing.T, port int, who string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	const level, namedCleanSession = 4, 0xC2
	body := []byte{0, 4, 'M', 'Q', 'T', 'T', level, namedCleanSession, 0, 60}
	for _, text := range []string{"device", "anybody", who} {
		body = append(body, 0, byte(len(text)))
		body = append(body, text...)
	}
	_, err = nc.Write(append([]byte{0x10, byte(len(body))}, body...))
	must(t, err)
	must(t, nc.SetReadDeadline(time.Now().Add(longEnough)))
	answer := make([]byte, 4)
	if _, err := io.ReadFull(nc, answer); err != nil || answer[0] != 0x20 || answer[3] != 0 {
		t.Fatalf("it is not let in: %v, %v", answer, err)
	}
	return nc
}

// leafServer is a server of somebody else's, linked by leaf nodes.
func leafServer(t *testing.T, leaf server.LeafNodeOpts) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{ServerName: "elsewhere", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, LeafNode: leaf})
	must(t, err)
	ended := make(chan struct{})
	go func() { defer close(ended); s.Start(); s.WaitForShutdown() }()
	t.Cleanup(func() { s.Shutdown(); <-ended })
	if !s.ReadyForConnections(longEnough) {
		t.Fatal("it does not start")
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
