package rail

import (
	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/messages"
)

// Description says what the rail answers.
type Description struct {
	Space   string `json:"space"`
	Service string `json:"service"`
	// Retire is the subject that a retirement is asked for on, with the names of the
	// parts that vary in braces.
	Retire string `json:"retire"`
	// MaxWaitMS is the longest that wait_ms may be.
	MaxWaitMS int64 `json:"max_wait_ms"`
}

// Describe tells any user of the callers' account what the rail answers.
func (r *Rail) Describe(q Question) (Description, error) {
	if _, err := r.caller(q); err != nil {
		return Description{}, Refuse(err)
	}
	if len(q.Body) > 0 {
		return Description{}, Refuse(messages.Malformed.Because("send no body"))
	}
	return Description{
		Space: r.config.Space, Service: broker.AdminService,
		Retire:    broker.RetireSubject(r.config.Space, messages.Principal{Owner: "{owner}", Actor: "{actor}"}, "{uid}"),
		MaxWaitMS: MaxWait.Milliseconds(),
	}, nil
}
