package face

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

// Controllers answers at the doors of controllers, and lists them. It is safe for
// concurrent use.
type Controllers interface {
	// AskController returns when what is released is recorded.
	AskController(context.Context, messages.AskController) (messages.ControllerIssued, error)
	// Controllers lists the instances that are run by one.
	Controllers(context.Context) (messages.Controllers, error)
}

// Verifier verifies bearers of this space.
type Verifier interface {
	Verify(token string, now time.Time) (identity.Bearer, error)
}

// door is one of the doors of controllers.
func (f *Face) door(which messages.ControllerDoor) endpoint {
	return endpoint{queued: true, proves: true, media: []string{mediaJSON},
		serve: func(ctx context.Context, c *call) error { return f.controllerDoor(ctx, c, which) }}
}

// controllerDoor answers POST /v1/controllers/{door}: the request is the body, and the
// proof of who asks a bearer of the space, or a token of the provider, in the header. The
// body is
//
//	{"v":1, "space":…, "actor":…, "endpoint":…, "instance":…, "epoch":0, "request_id":…,
//	 "keys":{"supervisor":U…, "executor":U…, "server":U…, "recorder":U…, "ledger":U…}}
//
// and for activate `"commands":[…]`; for every door after it `"receipt":…`, for session
// `"session":{"id":…, "user":U…, "expires_at":…}`, and for retire
// `"target":{"owner":…, "actor":…, "uid":…, "op_id":…, "user":U…}`.
func (f *Face) controllerDoor(ctx context.Context, c *call, door messages.ControllerDoor) error {
	request, err := controller.Parse(door, c.body)
	if err != nil {
		return err
	}
	person, err := f.person(ctx, c.r.Header["Authorization"], request.Actor)
	c.about = person.Principal
	if err != nil {
		return err
	}
	issued, err := f.controllers.AskController(ctx, messages.AskController{Person: person, Request: request})
	if err != nil {
		return err
	}
	c.json(http.StatusOK, viewIssued(request.Space, issued))
	return nil
}

// person is whom the proof names. A token of the provider names a subject, and the
// request which of its actors asks; a bearer names the actor itself.
func (f *Face) person(ctx context.Context, headers []string, actor string) (messages.ControllerPerson, error) {
	if len(headers) != 1 || bearerIn(headers[0]) == "" {
		return messages.ControllerPerson{}, messages.ProofMissing
	}
	token := bearerIn(headers[0])
	if issuerIn(token) == identity.Issuer(f.config.Space) {
		b, err := f.public.Verifier.Verify(token, f.config.Now())
		if err != nil {
			return messages.ControllerPerson{}, err
		}
		return messages.ControllerPerson{Principal: b.Principal, UID: b.UID, Credential: b.CredentialID, Scope: b.Scope}, nil
	}
	bridge := f.config.Bridge
	if bridge.Provider == nil {
		return messages.ControllerPerson{}, messages.ProviderAbsent
	}
	proof, err := bridge.Provider.Verify(ctx, token)
	if err != nil {
		return messages.ControllerPerson{}, err
	}
	owner, err := bridge.OwnerOf(proof.Subject)
	return messages.ControllerPerson{Principal: messages.Principal{Owner: owner, Actor: actor}}, err
}

// issuerIn is whom a token says it is from, unproved: it only tells who is to prove it.
func issuerIn(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	_ = json.Unmarshal(raw, &claims) // whoever is none is nobody's
	return claims.Issuer
}

// issuedView is what a door gives. Times are RFC 3339, UTC, in whole seconds.
type issuedView struct {
	Space     string `json:"space"`
	Endpoint  string `json:"endpoint"`
	Instance  string `json:"instance"`
	Epoch     uint64 `json:"epoch"`
	Owner     string `json:"owner"`
	Actor     string `json:"actor"`
	RequestID string `json:"request_id"`
	// Credentials are by kind.
	Credentials map[messages.ControllerKind]credentialView `json:"credentials"`
	Receipt     string                                     `json:"receipt,omitempty"`
	IssuedAt    string                                     `json:"issued_at"`
	ExpiresAt   string                                     `json:"expires_at"`
}

type credentialView struct {
	User      string `json:"user"`
	JWT       string `json:"jwt"`
	ExpiresAt string `json:"expires_at"`
}

func viewIssued(space string, i messages.ControllerIssued) issuedView {
	view := issuedView{Space: space, Endpoint: i.Endpoint, Instance: i.Instance, Epoch: i.Epoch, Owner: i.Principal.Owner, Actor: i.Principal.Actor,
		RequestID: i.RequestID, Credentials: map[messages.ControllerKind]credentialView{}, Receipt: i.Receipt.Reveal(),
		IssuedAt: atSecond(i.Issued), ExpiresAt: atSecond(i.Expires)}
	for _, c := range i.Credentials {
		view.Credentials[c.Kind] = credentialView{User: c.User, JWT: c.JWT, ExpiresAt: atSecond(c.Expires)}
	}
	return view
}

// atSecond writes a time; a zero one is empty.
func atSecond(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// controllerView is an instance that a controller runs, as an operator sees it.
type controllerView struct {
	Endpoint string                 `json:"endpoint"`
	Instance string                 `json:"instance"`
	Owner    string                 `json:"owner"`
	Actor    string                 `json:"actor"`
	State    messages.InstanceState `json:"state"`
	Epoch    uint64                 `json:"epoch"`
	// Prepared is the epoch of the process that has come to the doors.
	Prepared  uint64 `json:"prepared"`
	Activated bool   `json:"activated"`
	// Live counts credentials; the first of them runs out at ExpiresAt, empty without any.
	Live      int    `json:"live"`
	ExpiresAt string `json:"expires_at"`
}

// listControllers answers GET /v1/controllers.
func (f *Face) listControllers(ctx context.Context, c *call) error {
	all, err := f.controllers.Controllers(ctx)
	if err != nil {
		return err
	}
	views := make([]controllerView, len(all.Items))
	for i, one := range all.Items {
		views[i] = controllerView{Endpoint: one.Endpoint, Instance: one.Instance, Owner: one.Principal.Owner, Actor: one.Principal.Actor, State: one.State,
			Epoch: one.Epoch, Prepared: one.Prepared, Activated: one.Activated, Live: one.Live, ExpiresAt: atSecond(one.Expires)}
	}
	c.json(http.StatusOK, map[string]any{"controllers": views, "unreadable": listed(all.Unreadable)})
	return nil
}
