package connect

import (
	"fmt"
	"strings"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/nacl/secretbox"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// SealHeader is the header of a connect request that names the key it is sealed by.
const SealHeader = "Nats-Server-Xkey"

// MaxRequest is the size of a sealed request, in bytes. A larger one is refused unread.
const MaxRequest = 1 << 20

// OpenerConfig says what an Opener opens, and for whom.
type OpenerConfig struct {
	// XKey is the seed of the AUTH account's sealing key. Without it nothing can be
	// opened, so it is required.
	XKey messages.Secret
	// Servers lists the ids of the servers that may ask. Nil lets every server ask
	// whose request is sealed to us; an empty list would silence them all and is refused.
	Servers []string
}

// Opener opens connect requests and verifies where they come from. It keeps the
// shared key of every server it has heard, up to a bound.
type Opener struct {
	keys    *sharedKeys
	servers map[string]struct{}
	scratch scratch
}

// NewOpener checks the configuration, of which it lists every problem.
func NewOpener(c OpenerConfig) (*Opener, error) {
	keys, err := newSharedKeys(c.XKey)
	if err != nil {
		return nil, err
	}
	if c.Servers != nil && len(c.Servers) == 0 {
		return nil, messages.Malformed.Because("an empty list of servers would leave every connect unanswered; leave it out to allow all")
	}
	o := &Opener{keys: keys}
	var wrong []string
	for _, id := range c.Servers {
		if !nkeys.IsValidPublicServerKey(id) {
			wrong = append(wrong, fmt.Sprintf("%.60q", id))
			continue
		}
		if o.servers == nil {
			o.servers = make(map[string]struct{}, len(c.Servers))
		}
		o.servers[id] = struct{}{}
	}
	if wrong != nil {
		return nil, messages.Malformed.Because("not a server's public key: %s", strings.Join(wrong, ", "))
	}
	return o, nil
}

// Open reads one request. sealedBy is the value of its SealHeader.
//
// Its checks come in this order: sealed, opens, signature, issuer is the server,
// sealed by that server's own key, the server is on the list, a user key is there.
// The first two faults are messages.RequestUnsealed, the rest is
// messages.RequestForged; neither may be answered, since nothing says who asked.
func (o *Opener) Open(sealedBy string, payload []byte) (Request, error) {
	if sealedBy == "" {
		return Request{}, messages.RequestUnsealed.Because("it carries no %s", SealHeader)
	}
	shared, kept, err := o.keys.of(sealedBy)
	if err != nil {
		return Request{}, err
	}
	claims, err := o.unseal(shared, payload)
	if err != nil {
		return Request{}, err
	}
	if err := o.checkOrigin(claims, sealedBy); err != nil {
		return Request{}, err
	}
	if !kept {
		o.keys.keep(sealedBy, shared) // only now is it a server's
	}
	return claims.request(shared), nil
}

// checkOrigin refuses a signed request that is not the sealing server's own.
func (o *Opener) checkOrigin(c *requestClaims, sealedBy string) error {
	switch {
	case c.issuer != c.serverID:
		return messages.RequestForged.Because("its issuer is not the server it names")
	case c.serverXKey != sealedBy:
		return messages.RequestForged.Because("it is sealed by another key than the server's")
	case o.servers != nil && !o.listed(c.serverID):
		return messages.RequestForged.Because("the server is not on the list")
	case !nkeys.IsValidPublicUserKey(c.userNkey):
		return messages.RequestForged.Because("it names no user key")
	}
	return nil
}

func (o *Opener) listed(id string) bool {
	_, ok := o.servers[id]
	return ok
}

func (c *requestClaims) request(shared *sharedKey) Request {
	return Request{
		ID:         names.NewUID(),
		ServerID:   c.serverID,
		ServerName: cut(c.serverName),
		ServerXKey: c.serverXKey,
		UserNkey:   c.userNkey,
		Token:      messages.NewSecret(c.token),
		ClientHost: cut(c.clientHost),
		ClientName: cut(c.clientName),
		ClientKind: cut(c.clientKind),
		shared:     shared,
	}
}

// cut bounds what is kept of a text that somebody else chose.
func cut(s string) string {
	const most = 128
	if len(s) > most {
		s = strings.Clone(s[:most])
	}
	return strings.ToValidUTF8(s, "?")
}

// The form of a sealed message: the version, a nonce, a box.
const (
	sealVersion = "xkv1"
	nonceSize   = 24
	sealPrefix  = len(sealVersion) + nonceSize
)

// unseal opens a payload and reads the token in it.
func (o *Opener) unseal(key *sharedKey, sealed []byte) (*requestClaims, error) {
	switch {
	case len(sealed) > MaxRequest:
		return nil, messages.RequestUnsealed.Because("it is too large")
	case len(sealed) <= sealPrefix+secretbox.Overhead || string(sealed[:len(sealVersion)]) != sealVersion:
		return nil, messages.RequestUnsealed.Because("it is not sealed")
	}
	opened, decoded := o.scratch.borrow(), o.scratch.borrow()
	defer o.scratch.giveBack(opened)
	defer o.scratch.giveBack(decoded)
	nonce := [nonceSize]byte(sealed[len(sealVersion):sealPrefix])
	token, ok := secretbox.Open(*opened, sealed[sealPrefix:], &nonce, (*[32]byte)(key))
	if !ok {
		return nil, messages.RequestUnsealed.Because("it cannot be opened with our key")
	}
	*opened = token
	claims, err := readRequest(token, decoded)
	if err != nil {
		return nil, messages.RequestForged.Because("%s", err)
	}
	return claims, nil
}
