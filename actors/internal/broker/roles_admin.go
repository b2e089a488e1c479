package broker

import (
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// AdminService is the name of the service on the control rail, and of its queue
	// group.
	AdminService = "auth"
	// RequesterLifetime is how long one retirement may be asked for.
	RequesterLifetime = 5 * time.Minute
)

// RetireSubject is where the retirement of one incarnation is asked for on the
// control rail.
func RetireSubject(space string, target messages.Principal, uid string) string {
	return retirePrefix(space) + target.Owner + "." + target.Actor + "." + uid
}

// AnyRetireSubject is every RetireSubject of a space.
func AnyRetireSubject(space string) string { return retirePrefix(space) + "*.*.*" }

func retirePrefix(space string) string {
	return "cotal." + space + ".rail." + AdminService + ".retire."
}

// DescribeSubject is where the control rail says what it answers.
func DescribeSubject(space string) string {
	return "cotal." + space + ".rail." + AdminService + ".describe"
}

// Admin is `auth-admin`: it serves the control rail. It may answer whatever came in
// from another account, and nothing else: such an answer goes to a subject that the
// server made, so that nobody can aim it at a row.
func Admin() Role {
	r := Role{
		name: "auth-admin", account: trust.CTRL,
		publish:   []string{"_R_.>"},
		subscribe: []string{AnyRetireSubject("{space}") + " " + AdminService, DescribeSubject("{space}") + " " + AdminService},
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} { // every NATS service has these; nobody is there who could ask
		r.subscribe = append(r.subscribe, "$SRV."+verb, "$SRV."+verb+"."+AdminService, "$SRV."+verb+"."+AdminService+".*")
	}
	return r
}

// RetirementRequester is a user of SVC who may ask for one retirement.
type RetirementRequester struct {
	// Behalf is the principal that asks.
	Behalf messages.Principal
	// Target and UID are the incarnation that is to end.
	Target messages.Principal
	UID    string
	// User is the public nkey of the user: whoever asks made it, so that no seed
	// travels.
	User string
	// Expires is RequesterLifetime away at most.
	Expires time.Time
}

// InboxPrefix is the inbox of the user, who may hear nothing else.
func (r RetirementRequester) InboxPrefix() string { return inboxOf(r.User) }

// requesterName is the name of a user who asks on behalf of somebody.
func requesterName(space string, behalf messages.Principal) string {
	return RequesterNames(space) + behalf.String()
}

// RequesterNames is what the names of RetirementRequesters begin with; the dotted
// principal follows.
func RequesterNames(space string) string { return "cotal:retire:" + space + ":" }

// MintRetirementRequester signs such a user: it may publish the one subject of its
// target and hear its own inbox.
func MintRetirementRequester(m *trust.Material, r RetirementRequester) (string, error) {
	for _, p := range []messages.Principal{r.Behalf, r.Target} {
		if err := names.CheckPrincipal(p); err != nil {
			return "", fmt.Errorf("mint who asks for a retirement: %w", err)
		}
	}
	if err := names.CheckUID(r.UID); err != nil {
		return "", fmt.Errorf("mint who asks for a retirement: %w", err)
	}
	if left := time.Until(r.Expires); left <= 0 || left > RequesterLifetime {
		return "", messages.InternalFault.Because("who asks for a retirement lives for up to %s, not %s", RequesterLifetime, left)
	}
	return m.MintOwn(trust.OwnUser{
		Account: trust.SVC, Subject: r.User, Name: requesterName(m.Space, r.Behalf), Expires: r.Expires,
		Permissions: jwt.Permissions{
			Pub: jwt.Permission{Allow: jwt.StringList{RetireSubject(m.Space, r.Target, r.UID)}},
			Sub: jwt.Permission{Allow: jwt.StringList{r.InboxPrefix() + ".>"}},
		},
	})
}
