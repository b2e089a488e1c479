package trust

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// OwnUser describes a user of this service itself, or of a service that talks to
// it: never a principal.
type OwnUser struct {
	Account Account
	// Subject is the public nkey of the user.
	Subject string
	// Name stands in the JWT; it must begin with `cotal:`. Users of SYS are scoped:
	// there it is the id of their connection instead, since their inbox is derived
	// from it.
	Name string
	// Permissions are exact. An empty list means nothing, never everything. Users of
	// SYS have none of their own: the scope of their key is what they may do.
	Permissions jwt.Permissions
	// Scope picks the scoped key of SYS: m.Observer.Public or m.Evictor.Public.
	Scope string
	// Expires is rounded up to a whole second; zero for never.
	Expires time.Time
	// Tags stand in the JWT; servers read them in lower case.
	Tags []string
	// Issued, when it is not zero, is the moment that the JWT says it was signed at: then
	// the same user is signed to the same bytes, whenever that is.
	Issued time.Time
}

// MintOwn signs a user of the service's own. It refuses a user of AUTH that the
// account does not list, since the server itself would let one in, and a name
// that could be a principal's.
func (m *Material) MintOwn(u OwnUser) (string, error) {
	if err := m.checkOwn(u); err != nil {
		return "", fmt.Errorf("mint %s in %s: %w", u.Name, u.Account, err)
	}
	claims := jwt.NewUserClaims(u.Subject)
	claims.Name = u.Name
	claims.IssuerAccount = m.Accounts[u.Account]
	claims.Expires = wholeSeconds(u.Expires)
	issuer := m.Signing[u.Account].Public
	if u.Account == SYS {
		claims.SetScoped(true)
		issuer = u.Scope
	} else {
		claims.Permissions = nothingByDefault(u.Permissions)
	}
	claims.Tags.Add(u.Tags...)
	if !u.Issued.IsZero() {
		return encodeAt(claims, m.Signer(issuer), u.Issued)
	}
	return claims.Encode(m.Signer(issuer))
}

func (m *Material) checkOwn(u OwnUser) error {
	if !nkeys.IsValidPublicUserKey(u.Subject) {
		return messages.InternalFault.Because("the subject is not a user's key")
	}
	switch u.Account {
	case AUTH:
		if u.Subject != m.Presence.Public && !slices.ContainsFunc(m.Callouts, func(k Key) bool { return k.Public == u.Subject }) {
			return messages.InternalFault.Because("AUTH holds nobody but its listed users")
		}
	case SYS:
		if u.Scope == "" || u.Scope != m.Observer.Public && u.Scope != m.Evictor.Public {
			return messages.InternalFault.Because("SYS holds observers and evictors only")
		}
		return names.CheckUID(u.Name)
	case DATA, CTRL, SVC:
	default:
		return messages.InternalFault.Because("there is no such account")
	}
	if !strings.HasPrefix(u.Name, "cotal:") {
		return messages.InternalFault.Because("a user of the service is named cotal:<role>:<space>")
	}
	return nil
}

// MintPrincipal signs the user of a principal. The claims must be complete; what
// it adds is the refusal of whatever is no principal of DATA: another issuing
// account, a name that is not `<owner>-<actor>`, no expiry, an empty list, or
// `$SYS.>` not denied both ways (without which the user could read every
// connection of the account).
func (m *Material) MintPrincipal(claims *jwt.UserClaims) (string, error) {
	if err := m.checkPrincipal(claims); err != nil {
		return "", fmt.Errorf("mint principal %s: %w", claims.Name, err)
	}
	return claims.Encode(m.Signer(m.Signing[DATA].Public))
}

func (m *Material) checkPrincipal(c *jwt.UserClaims) error {
	owner, actor, _ := strings.Cut(c.Name, "-")
	if err := names.CheckPrincipal(messages.Principal{Owner: owner, Actor: actor}); err != nil {
		return err
	}
	switch {
	case c.IssuerAccount != m.Accounts[DATA]:
		return messages.InternalFault.Because("principals live in DATA alone")
	case c.Expires == 0:
		return messages.InternalFault.Because("it would never expire")
	case len(c.Pub.Allow) == 0 && !slices.Contains(c.Pub.Deny, ">"), len(c.Sub.Allow) == 0 && !slices.Contains(c.Sub.Deny, ">"):
		return messages.InternalFault.Because("an empty list would mean everything")
	case !denies(c.Pub.Deny, "$SYS.>") || !denies(c.Sub.Deny, "$SYS.>"):
		return messages.InternalFault.Because("it does not deny $SYS.>")
	}
	return nil
}

// denies reports whether a deny list names the pattern, or everything.
func denies(list jwt.StringList, pattern string) bool {
	return slices.Contains(list, pattern) || slices.Contains(list, ">")
}

// nothingByDefault turns an empty list, which the server reads as everything,
// into an explicit nothing. Response permissions work past it.
func nothingByDefault(p jwt.Permissions) jwt.Permissions {
	if len(p.Pub.Allow) == 0 {
		p.Pub.Deny = jwt.StringList{">"}
	}
	if len(p.Sub.Allow) == 0 {
		p.Sub.Deny = jwt.StringList{">"}
	}
	return p
}

// wholeSeconds rounds up, so that a lifetime is never shorter than asked for.
func wholeSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
