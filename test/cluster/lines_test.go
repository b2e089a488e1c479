package cluster

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
)

// line is a connection that costs next to nothing: nobody reads from it until it is
// asked whether it was hung up.
type line struct {
	conn net.Conn
	from *bufio.Reader
}

// joined is how long a connect may take of a line; it is more than a server has for it.
const joined = 5 * time.Second

// join connects to a server until the test ends.
func (w *person) join(to *server) (l *line) {
	w.Helper()
	w.eventually(w.actor+" connects to "+to.name, func() (err error) {
		l, err = w.dialLine(to)
		return err
	})
	w.Cleanup(func() { _ = l.conn.Close() })
	return l
}

func (w *person) dialLine(to *server) (_ *line, err error) {
	at, err := url.Parse(to.url)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(joined)); err != nil {
		return nil, err
	}
	l := &line{conn, bufio.NewReaderSize(conn, 2048)}
	first, err := l.next()
	if err != nil {
		return nil, err
	}
	connect, err := w.connect(strings.TrimPrefix(first, "INFO "))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s\r\nPING\r\n", connect); err != nil {
		return nil, err
	}
	for {
		switch said, err := l.next(); {
		case err != nil:
			return nil, err
		case said == "PONG":
			return l, conn.SetDeadline(time.Time{})
		case strings.HasPrefix(said, "-ERR"):
			return nil, errors.New(said)
		}
	}
}

func (l *line) next() (string, error) {
	text, err := l.from.ReadString('\n')
	return strings.TrimSpace(text), err
}

// connect is what the person says to a server that greets with info.
func (w *person) connect(info string) ([]byte, error) {
	var greeting struct{ Nonce string }
	if err := json.Unmarshal([]byte(info), &greeting); err != nil {
		return nil, err
	}
	creds, err := os.ReadFile(w.made.SentinelCreds)
	if err != nil {
		return nil, err
	}
	user, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return nil, err
	}
	pair, err := jwt.ParseDecoratedUserNKey(creds)
	if err != nil {
		return nil, err
	}
	signed, err := pair.Sign([]byte(greeting.Nonce))
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"jwt": user, "sig": base64.RawURLEncoding.EncodeToString(signed), "auth_token": w.token,
		"lang": "go", "version": "0", "protocol": 1, "verbose": false, "pedantic": false,
	})
}

// hungUp makes sure that the server has ended each of the lines.
func (p *play) hungUp(lines []*line) {
	p.Helper()
	for _, l := range lines {
		p.must(l.conn.SetReadDeadline(time.Now().Add(patience)))
		// A server that drops a connection may do so while there is something unread.
		var timeout net.Error
		if _, err := io.Copy(io.Discard, l.from); errors.As(err, &timeout) && timeout.Timeout() {
			p.Error("a connection is left")
		}
	}
}
