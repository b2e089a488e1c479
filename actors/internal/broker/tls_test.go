package broker_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
	"github.com/cotal-ai/authplane/actors/internal/trust"
)

func TestDialOverTLS(t *testing.T) {
	dir := natsdtest.Chain(t, "acme")
	roots := serveTLS(t, dir)
	space := &natsdtest.Space{Name: "acme", Dir: dir, Material: natsdtest.Load(t, dir, "acme"), Server: natsdtest.Start(t, natsd.Config{Dir: dir})}
	url := "tls://" + strings.TrimPrefix(space.Server.Address(), "nats://")

	c := dial(t, dialer(t, space, func(c *broker.Config) { c.URL = url; c.TLS = &tls.Config{RootCAs: roots} }), broker.Reader(instance))
	if _, err := c.NATS().TLSConnectionState(); err != nil {
		t.Errorf("it is not encrypted: %v", err)
	}
	_, err := dialer(t, space, func(c *broker.Config) { c.URL = url }).Dial(t.Context(), broker.Reader(instance), newCustody(t).keep)
	if err == nil {
		t.Error("it trusts a server that nobody vouches for")
	}
	c.Sever()
	await(t, c.Ended(), "it ends")
}

// serveTLS adds a certificate to the server's configuration, and returns who
// vouches for it.
func serveTLS(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	web := httptest.NewTLSServer(nil) // comes with a certificate for 127.0.0.1
	defer web.Close()
	key, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: web.Certificate().Raw},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	}
	for name, block := range files {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf, err := os.OpenFile(trust.ServerConf(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conf, "tls { cert_file: %q, key_file: %q }\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if closed := conf.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	return roots
}
