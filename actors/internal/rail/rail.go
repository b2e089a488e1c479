package rail

import (
	"context"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// Authority is who knows and does. It is safe for concurrent use.
type Authority interface {
	// Read tells who is current.
	Read(context.Context, messages.ReadAuthority) (messages.Authority, error)
	// Retire returns when the retirement is durable, whoever is to do it.
	Retire(context.Context, messages.AskRetirement) (messages.RetirementAsked, error)
	// Await returns once the operation is over, or with what is known of it then; it is
	// refused with OperationNotFound when there is none by then.
	Await(ctx context.Context, id string, until time.Time) (messages.OperationProgress, error)
}

// Config is what the rail needs.
type Config struct {
	Space string
	// Callers is the public key of the account whose users may ask.
	Callers   string
	Authority Authority
	// OperationOf is the id of the retirement of an incarnation.
	OperationOf func(uid string) string
}

// Rail answers questions. It is safe for concurrent use.
type Rail struct{ config Config }

// New makes a rail; every field of the configuration is required.
func New(c Config) *Rail { return &Rail{c} }

// Question is one request as it came.
type Question struct {
	Subject string
	// Header is the message's, as the server passed it on.
	Header map[string][]string
	Body   []byte
	// Waits is told, once, that the answer only waits for an operation from here on. Where
	// it says no, the answer is given as things stand; nil says yes.
	Waits func() bool
}
