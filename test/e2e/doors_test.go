package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/test/world"
)

// manyDoors is a broker that also takes TLS and WebSocket.
func manyDoors(t *testing.T) (options func(*server.Options), trusts nats.Option) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	options = func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
		o.AllowNonTLS, o.TLSTimeout = true, 2
		o.Websocket = server.WebsocketOpts{Host: "127.0.0.1", Port: -1, NoTLS: true}
	}
	return options, nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
}

// byWebSocket connects through the broker's other door.
func byWebSocket(w *world.World) nats.Option {
	return func(o *nats.Options) error {
		o.Url = fmt.Sprintf("ws://127.0.0.1:%d", webSocketPort(w))
		o.Servers = nil
		return nil
	}
}

func webSocketPort(w *world.World) int {
	for _, url := range w.Broker.PortsInfo(world.Patience).WebSocket {
		var port int
		if _, err := fmt.Sscanf(url, "ws://127.0.0.1:%d", &port); err == nil {
			return port
		}
	}
	w.Fatal("the broker has no door for WebSocket")
	return 0
}
