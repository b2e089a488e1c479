package broker

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// Role is what one connection is for and exactly what it may do. The roles are
// the functions below; nobody makes another one elsewhere.
//
// In the lists {space}, {authority} and {records} (the two streams), {rows} and
// {recorded} (their subject prefixes), {instance} and {endpoint} stand for those
// names; the connection's own inbox is added to every subscribe list.
type Role struct {
	name     string
	account  trust.Account
	instance string
	// endpoint, when set, is the one service that the connection is for.
	endpoint string

	publish   []string
	subscribe []string
	// respond, when not nil, permits answering what arrives, and nothing else.
	respond *jwt.ResponsePermission

	// identity picks a user that the account lists; nil for a fresh one.
	identity func(*trust.Material) trust.Key
	// scope picks the scoped key that says what a user of SYS may do.
	scope func(*trust.Material) trust.Key

	life lifetime
	// echo lets the connection hear what it publishes itself.
	echo bool
}

// lifetime is how long a role's user JWT runs, and whether it reconnects.
type lifetime int

const (
	standing   lifetime = iota // renewed at half-life, reconnects
	shortLived                 // 60 s, never reconnects
	unending                   // no expiry, never reconnects
)

// Writer is `auth-mint`: it writes what grants, exchanges and mints change, makes
// the authority stream, and reads back what it wrote; with its beat it proves the
// leader before it refuses anything. The plane claim, the operations and the
// instances are not its to write.
func Writer(instance string) Role {
	return Role{
		name: "auth-mint", account: trust.CTRL, instance: instance,
		publish: []string{
			"$JS.API.STREAM.CREATE.{authority}",
			"$JS.API.STREAM.INFO.{authority}",
			"$JS.API.STREAM.MSG.GET.{authority}",
			"{rows}.head.*.*",
			"{rows}.uid.*",
			"{rows}.cred.*.*",
			"{rows}.bysrc.*.*.*.*",
			"{rows}.srcgate.*.*",
			"{rows}.grant.*.*",
			"{rows}.prov.*.*.*.*",
			"{rows}.asked.{instance}",
			"{rows}.roster",
			"{rows}.beat.{instance}",
		},
	}
}

// Reader is `auth-reader`: leader-served reads and listings of the authority
// stream, the nudge that something changed, and the beat that proves on this very
// connection that the leader has a quorum.
func Reader(instance string) Role {
	return Role{
		name: "auth-reader", account: trust.CTRL, instance: instance,
		publish: []string{
			"$JS.API.STREAM.INFO.{authority}",
			"$JS.API.STREAM.MSG.GET.{authority}",
			"{rows}.beat.{instance}",
		},
		subscribe: []string{"cotal.{space}.changed.>"},
	}
}

// Callout is `auth-service`: it hears the connect requests of its queue group and
// may answer each of them once within 3 s. i counts from 1; connections share
// the users that AUTH lists.
func Callout(i int) Role {
	r := PlainCallout(i)
	r.subscribe = []string{CalloutSubject + " " + CalloutQueue}
	return r
}

// PlainCallout is Callout outside the queue group, for where nobody can kick a
// stopped peer: all hear every request and the first answer wins.
func PlainCallout(i int) Role {
	return Role{
		name: "auth-service", account: trust.AUTH,
		subscribe: []string{CalloutSubject},
		respond:   &jwt.ResponsePermission{MaxMsgs: 1, Expires: 3 * time.Second},
		identity: func(m *trust.Material) trust.Key {
			return m.Callouts[(max(i, 1)-1)%len(m.Callouts)]
		},
	}
}

// Presence is `auth-presence`: it says that this process lives and hears who else
// does, itself included; and it asks, and hears, and says, whether decisions are
// settled.
func Presence(instance string) Role {
	return Role{
		name: "auth-presence", account: trust.AUTH, instance: instance,
		publish:   []string{"cotal.{space}.presence.{instance}", "cotal.{space}.settle.*", "cotal.{space}.settled.*"},
		subscribe: []string{"cotal.{space}.presence.*", "cotal.{space}.settle.*", "cotal.{space}.settled.*"},
		identity:  func(m *trust.Material) trust.Key { return m.Presence },
		echo:      true,
	}
}

// Observer is `auth-observer`: it asks the servers who they are and which
// connections DATA, CTRL and AUTH have. What it may do is the scope of its key.
func Observer() Role {
	return Role{name: "auth-observer", account: trust.SYS,
		scope: func(m *trust.Material) trust.Key { return m.Observer }}
}

// Evictor is `auth-evictor`: it has servers drop connections. What it may do is
// the scope of its key.
func Evictor() Role {
	return Role{name: "auth-evictor", account: trust.SYS,
		scope: func(m *trust.Material) trust.Key { return m.Evictor }}
}

// label is the connection's name on the server and in custody.
func (r Role) label(space string) string {
	label := "cotal:" + r.name + ":" + space
	if r.endpoint != "" {
		label += ":" + r.endpoint
	}
	return label
}

// permissions writes the role's lists out for one connection.
func (r Role) permissions(space, inbox string) (jwt.Permissions, error) {
	if r.instance != "" {
		if err := names.CheckUID(r.instance); err != nil {
			return jwt.Permissions{}, fmt.Errorf("instance of %s: %w", r.name, err)
		}
	}
	if r.endpoint != "" && !isEndpoint(r.endpoint) {
		return jwt.Permissions{}, messages.Malformed.Because("the endpoint of %s is one token of [a-z0-9_-]", r.name)
	}
	words := strings.NewReplacer(
		"{space}", space,
		"{authority}", AuthorityStream(space),
		"{rows}", "$KV."+AuthorityBucket(space),
		"{records}", RecordsStream(space),
		"{recorded}", "$KV."+RecordsBucket(space),
		"{instance}", r.instance,
		"{endpoint}", r.endpoint,
	)
	p := jwt.Permissions{Resp: r.respond}
	for _, subject := range r.publish {
		p.Pub.Allow.Add(words.Replace(subject))
	}
	for _, subject := range r.subscribe {
		p.Sub.Allow.Add(words.Replace(subject))
	}
	p.Sub.Allow.Add(inbox + ".>")
	return p, nil
}
