package broker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

// MaxControllerLifetime is the longest life of a controller's credential.
const MaxControllerLifetime = 24 * time.Hour

// answerWithin is how long a controller may take to answer what it was asked.
const answerWithin = time.Minute

// ControllerSubject is a subject in SVC of one process of a controller. The epoch stands
// in it, so that a process which was superseded hears and says nothing of its
// successor's, however long its credentials run.
func ControllerSubject(space, endpoint, instance string, epoch uint64, rest string) string {
	return "cotal." + space + ".controller." + endpoint + "." + instance + "." + strconv.FormatUint(epoch, 10) + "." + rest
}

// ControllerUser is a user of SVC with one of a controller's credentials.
type ControllerUser struct {
	Kind               messages.ControllerKind
	Endpoint, Instance string
	Epoch              uint64
	// User is the public nkey, which the controller made.
	User string
	// Issued and Expires are whole seconds, at most MaxControllerLifetime apart.
	Issued, Expires time.Time
	// Commands are what a server answers: at least one.
	Commands []string
	// Session is the one of a session's user.
	Session string
	// Behalf asks, for a requester, for the end of Target's incarnation UID.
	Behalf, Target messages.Principal
	UID            string
}

// InboxPrefix is the inbox of the user, who may hear no other.
func (u ControllerUser) InboxPrefix() string { return inboxOf(u.User) }

// MintController signs such a user. The same user is signed to the same bytes.
func MintController(m *trust.Material, u ControllerUser) (string, error) {
	if err := u.check(); err != nil {
		return "", fmt.Errorf("mint %s of %s.%s: %w", u.Kind, u.Endpoint, u.Instance, err)
	}
	permissions, err := u.permissions(m.Space)
	if err != nil {
		return "", fmt.Errorf("mint %s of %s.%s: %w", u.Kind, u.Endpoint, u.Instance, err)
	}
	return m.MintOwn(trust.OwnUser{
		Account: trust.SVC, Subject: u.User, Name: u.name(m.Space), Permissions: permissions,
		Tags:   []string{"kind:" + string(u.Kind), "instance:" + u.Endpoint + "." + u.Instance, "epoch:" + strconv.FormatUint(u.Epoch, 10)},
		Issued: u.Issued, Expires: u.Expires,
	})
}

func (u ControllerUser) check() error {
	if err := names.CheckUID(u.Instance); err != nil {
		return err
	}
	life := u.Expires.Sub(u.Issued)
	longest := MaxControllerLifetime
	if u.Kind == messages.KindRequester {
		longest = RequesterLifetime
	}
	switch {
	case !isEndpoint(u.Endpoint):
		return messages.Malformed.Because("an endpoint is one token of [a-z0-9_-]")
	case u.Issued.Nanosecond() != 0 || u.Expires.Nanosecond() != 0 || life <= 0 || life > longest:
		return messages.InternalFault.Because("it lives for up to %s, in whole seconds, not %s", longest, life)
	}
	return nil
}

// name tells which process it is. The rail knows who asks for a retirement by the name
// alone, so that a requester has no other.
func (u ControllerUser) name(space string) string {
	if u.Kind == messages.KindRequester {
		return requesterName(space, u.Behalf)
	}
	return fmt.Sprintf("cotal:controller-%s:%s:%s:%s:%d", u.Kind, space, u.Endpoint, u.Instance, u.Epoch)
}

// permissions are exactly what the kind needs, and the own inbox.
func (u ControllerUser) permissions(space string) (jwt.Permissions, error) {
	at := func(rest string) string { return ControllerSubject(space, u.Endpoint, u.Instance, u.Epoch, rest) }
	var p jwt.Permissions
	p.Sub.Allow.Add(u.InboxPrefix() + ".>")
	switch u.Kind {
	case messages.KindSupervisor:
		p.Pub.Allow.Add(at("work.>"))
		p.Sub.Allow.Add(at("done.>"), at("event.>"))
	case messages.KindExecutor:
		p.Pub.Allow.Add(at("done.>"))
		p.Sub.Allow.Add(at("work.>"))
	case messages.KindServer:
		if err := u.serves(&p, at); err != nil {
			return p, err
		}
	case messages.KindRecorder:
		p.Pub.Allow.Add(at("record.>"))
	case messages.KindLedger:
		p.Pub.Allow.Add(at("ledger.>"))
	case messages.KindSession:
		if !isEndpoint(u.Session) {
			return p, messages.Malformed.Because("a session is one token of [a-z0-9_-]")
		}
		p.Sub.Allow.Add(at("session." + u.Session + ".>"))
		p.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: answerWithin}
	case messages.KindRequester:
		if err := u.checkRetirement(); err != nil {
			return p, err
		}
		p.Pub.Allow.Add(RetireSubject(space, u.Target, u.UID))
	default:
		return p, messages.InternalFault.Because("there is no such kind")
	}
	p.Pub.Deny.Add("$SYS.>")
	p.Sub.Deny.Add("$SYS.>")
	return p, nil
}

// serves lets a server hear its commands, and what every NATS service is asked.
func (u ControllerUser) serves(p *jwt.Permissions, at func(string) string) error {
	if len(u.Commands) == 0 {
		return messages.Malformed.Because("a server answers something")
	}
	for _, command := range u.Commands {
		if !isEndpoint(command) {
			return messages.Malformed.Because("a command is one token of [a-z0-9_-]")
		}
		p.Sub.Allow.Add(at("ask." + command))
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		p.Sub.Allow.Add("$SRV."+verb, "$SRV."+verb+"."+u.Endpoint, "$SRV."+verb+"."+u.Endpoint+".*")
	}
	p.Pub.Allow.Add(at("event.>"))
	p.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: answerWithin}
	return nil
}

func (u ControllerUser) checkRetirement() error {
	for _, p := range []messages.Principal{u.Behalf, u.Target} {
		if err := names.CheckPrincipal(p); err != nil {
			return err
		}
	}
	return names.CheckUID(u.UID)
}

// Maintenance is `remote-manager-maintenance`: it mends the registration of one instance,
// or reads whom its credentials were issued to, and ends.
func Maintenance(endpoint, instance string) Role {
	r := HostRegistration(endpoint, instance)
	r.name = "remote-manager-maintenance"
	return r
}
