package space

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// Problem is one thing that is wrong with a Config.
type Problem struct {
	// Key is the setting as authplane.yaml spells it, `idp.issuer`.
	Key string
	// Text says what is wrong with it, without naming it again.
	Text string
}

// Problems is the error of Config.Validate: everything that is wrong, in the order
// of the fields. It is messages.Malformed; find it with errors.As.
type Problems []Problem

// Error lists all problems on one line.
func (p Problems) Error() string { return p.Unwrap().Error() }

// Unwrap gives the catalogue's entry, with the list as its detail.
func (p Problems) Unwrap() error {
	texts := make([]string, len(p))
	for i, problem := range p {
		texts[i] = problem.Key + ": " + problem.Text
	}
	return messages.Malformed.Because("%s", strings.Join(texts, "; "))
}

func (p *Problems) note(key, format string, args ...any) {
	*p = append(*p, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
}

// servers notes what is wrong with a comma-separated list of server URLs.
func (p *Problems) servers(key, urls string) {
	sockets := 0
	list := strings.Split(urls, ",")
	for _, raw := range list {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil {
			p.note(key, "one of its URLs cannot be read") // it may hold a password, and is not repeated
			continue
		}
		if u.Scheme == "ws" || u.Scheme == "wss" {
			sockets++
		}
		if fault := serverFault(u); fault != "" {
			p.note(key, "%s %s", u.Redacted(), fault)
		}
	}
	if sockets > 0 && sockets < len(list) {
		p.note(key, "either all of its URLs are ws or wss, or none is")
	}
}

// serverFault says what is wrong with the URL of one server; empty for nothing.
func serverFault(u *url.URL) string {
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return "must begin with nats://, tls://, ws:// or wss://"
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case u.User != nil:
		return "holds a user; who connects is for the keys to say"
	case u.Hostname() == "":
		return "names no host"
	case u.Port() == "":
		return "names no port; 4222 is usual"
	case err != nil || port == 0:
		return "must name a port from 1 to 65535"
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return "must end behind the port"
	}
	return ""
}

// secureURL notes an address that others could listen in on.
func (p *Problems) secureURL(key, raw string) {
	if !isSecureURL(raw) {
		p.note(key, "must be an https URL, or http on a loopback address")
	}
}

// file notes a file that cannot be read.
func (p *Problems) file(key, path string) {
	file, err := os.Open(path)
	if err != nil {
		p.note(key, "%v", err)
		return
	}
	_ = file.Close() // nothing was read
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func isSecureURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && err == nil && ip.IsLoopback()
}
