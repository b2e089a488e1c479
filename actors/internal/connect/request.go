package connect

import (
	"github.com/cotal-ai/authplane/messages"
)

// Request is a connect request that proved to come from a server of ours. Only an
// Opener makes one.
type Request struct {
	// ID names the request in denials and logs. It is ours, made when the request
	// was opened.
	ID string
	// ServerID and ServerXKey are the public keys of the server, ServerName is its name.
	ServerID   string
	ServerName string
	ServerXKey string
	// UserNkey is the public key the server made up for this connect. The answer
	// must carry it.
	UserNkey string
	// Token is what the client presented as auth_token; not verified in any way.
	Token messages.Secret
	// ClientHost, ClientName and ClientKind describe the client for logs. The name
	// was chosen by the client. Each is cut to 128 bytes.
	ClientHost string
	ClientName string
	ClientKind string

	// shared seals the answer for the server that asked.
	shared *sharedKey
}
