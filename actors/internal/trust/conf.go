package trust

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

const (
	defaultURL  = "nats://127.0.0.1:4222"
	defaultPort = "4222"
	// maxControlLine must hold a CONNECT that carries a user JWT and a bearer.
	maxControlLine = 65536
)

// listen is what a server listens on so that clients reach it under the first of
// the URLs. Port 0 means any free one.
func listen(urls string) (string, error) {
	first, _, _ := strings.Cut(urls, ",")
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.Hostname() == "" || (u.Scheme != "nats" && u.Scheme != "tls") {
		return "", messages.Malformed.Because("a server's URL is nats://<host>:<port> or tls://<host>:<port>")
	}
	if u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return "", messages.Malformed.Because("a server's URL has a host and a port and nothing else")
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", messages.Malformed.Because("the port of a server's URL is a number up to 65535")
	}
	if number == 0 {
		port = "-1"
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// conf is the server's configuration. It holds no secret: operator and accounts
// are signed public statements.
func (c *chain) conf(dir, listen string) ([]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# The server of space %s. It holds no secret; keep it together with the streams.", c.doc.Space)
	line("# In a cluster every server has this file, with a server_name of its own and a cluster block.")
	line("server_name: %s", quoted("authplane_"+c.doc.Space))
	line("listen: %s", quoted(listen))
	line("max_control_line: %d", maxControlLine)
	line("")
	line("jetstream {")
	line("  store_dir: %s", quoted(filepath.Join(dir, storeDir)))
	line("  # sync_interval: always   # acknowledged writes outlive a power failure, at a price in writes a second")
	line("}")
	line("")
	line("operator: %s", c.doc.Operator)
	line("system_account: %s", c.identities[SYS].Public)
	line("resolver: MEMORY")
	line("resolver_preload: {")
	for _, a := range accounts {
		line("  # %s", a.nameIn(c.doc.Space))
		line("  %s: %s", c.identities[a].Public, c.doc.Accounts[a])
	}
	line("}")
	return []byte(b.String()), nil
}

// quoted writes a string so that the server's configuration reads it back.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
