package rail

import (
	"encoding/json"
	"strings"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// infoHeader is where the server says who sent what comes in from another account.
// It writes over what the sender put there.
const infoHeader = "Nats-Request-Info"

// caller is who asks, by the server's word: the name in the JWT of a user of ours.
func (r *Rail) caller(q Question) (name string, err error) {
	given := q.Header[infoHeader]
	if len(given) != 1 {
		return "", messages.CallerRefused.Because("the server does not say who it is")
	}
	var info struct {
		Account string `json:"acc"`
		Name    string `json:"name_tag"`
	}
	if err := json.Unmarshal([]byte(given[0]), &info); err != nil {
		return "", messages.CallerRefused.Because("what the server says cannot be read")
	}
	if info.Account == "" || info.Account != r.config.Callers {
		return "", messages.CallerRefused.Because("it is of another account")
	}
	return info.Name, nil
}

// requester is on whose behalf a caller asks for a retirement.
func (r *Rail) requester(q Question) (messages.Principal, error) {
	name, err := r.caller(q)
	if err != nil {
		return messages.Principal{}, err
	}
	dotted, is := strings.CutPrefix(name, broker.RequesterNames(r.config.Space))
	if !is {
		return messages.Principal{}, messages.CallerRefused.Because("it was not minted for a retirement")
	}
	behalf, err := names.ParsePrincipal(dotted)
	if err != nil {
		return messages.Principal{}, messages.CallerRefused.Because("it asks on behalf of nobody")
	}
	return behalf, nil
}
