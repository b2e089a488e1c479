package broker

import "github.com/cotal-ai/authplane/actors/internal/trust"

// OwnObserver is `auth-observer` where the system account is somebody else's: over a
// connection of CTRL it asks which connections CTRL has, and nothing else.
func OwnObserver() Role {
	return Role{name: "auth-observer", account: trust.CTRL, publish: []string{"$SYS.REQ.ACCOUNT.PING.CONNZ"}}
}
