package face

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// maxLabel is the longest label, in bytes.
	maxLabel = 256
	// maxRevision is the largest integer that every reader of JSON holds exactly.
	maxRevision = 1<<53 - 1
	// byOperator is who a grant was written by when it came over the loopback face.
	byOperator = "operator"
)

// writtenAnswer tells what was written. ActorToken is shown this one time.
type writtenAnswer struct {
	Owner      string `json:"owner"`
	Actor      string `json:"actor"`
	UID        string `json:"uid"`
	Revision   uint64 `json:"revision"`
	ActorToken string `json:"actor_token,omitempty"`
	// OpID is the retirement that a revocation asked for.
	OpID string `json:"op_id,omitempty"`
	// EndsBy is when every connection of it has ended at the latest, where nobody can drop
	// them; absent where they are dropped.
	EndsBy time.Time `json:"ends_by,omitzero"`
}

func writtenFrom(w messages.GrantWritten) writtenAnswer {
	return writtenAnswer{
		Owner: w.Principal.Owner, Actor: w.Principal.Actor, UID: w.UID, Revision: w.Revision,
		ActorToken: w.ActorToken.Reveal(), OpID: w.Operation,
	}
}

// putGrant answers POST /v1/grants.
func (f *Face) putGrant(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	anew := in.flag("new_incarnation")
	put, err := f.readPut(in)
	if err != nil {
		return err
	}
	c.about = put.Principal
	wait, err := c.wait(defaultWait)
	if err != nil {
		return err
	}
	if anew {
		if err := f.endFormer(ctx, c, put, wait); err != nil {
			return err
		}
	}
	written, err := f.put(ctx, c, put)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", "/v1/grants/"+written.Principal.Owner+"/"+written.Principal.Actor)
	c.json(http.StatusCreated, writtenFrom(written))
	return nil
}

func (f *Face) readPut(in *input) (messages.PutGrant, error) {
	bySubject, byOwner := in.has("sub"), in.has("owner")
	subject, owner, actor := in.text("sub"), in.text("owner"), in.text("actor")
	kind, parent := in.text("kind"), in.text("parent")
	put := messages.PutGrant{Allowance: readAllowance(in), Label: in.text("label"), By: byOperator}
	if err := in.done(); err != nil {
		return put, err
	}
	var err error
	if put.Kind, put.Parent, err = readKind(kind, parent); err != nil {
		return put, err
	}
	if owner, err = f.ownerOf(bySubject, byOwner, subject, owner); err != nil {
		return put, err
	}
	put.Principal = messages.Principal{Owner: owner, Actor: actor}
	if err := names.CheckPrincipal(put.Principal); err != nil {
		return put, err
	}
	if err := checkLabel(put.Label); err != nil {
		return put, err
	}
	return put, f.checkAllowance(put.Allowance)
}

// checkAllowance refuses what may not be written, and a role that would only shut
// its principal out.
func (f *Face) checkAllowance(a messages.Allowance) error {
	if err := grants.CheckAllowance(a); err != nil {
		return err
	}
	if a.Role == "" || a.Role == grants.DefaultRole || slices.Contains(f.config.Roles, a.Role) {
		return nil
	}
	known := strings.Join(append([]string{grants.DefaultRole}, f.config.Roles...), ", ")
	return messages.Malformed.Because("role %q is no permission profile; there is %s", a.Role, known)
}

// readKind reads whose grant it is: a person's, unless it says managed. Only that
// may have a parent; one without is bounded by nothing, as the operator wants it.
func readKind(kind, parent string) (messages.GrantKind, messages.Principal, error) {
	switch messages.GrantKind(kind) {
	case "", messages.Interactive:
		if parent != "" {
			return "", messages.Principal{}, messages.Malformed.Because("only a managed grant has a parent")
		}
		return messages.Interactive, messages.Principal{}, nil
	case messages.Managed:
		if parent == "" {
			return messages.Managed, messages.Principal{}, nil
		}
		above, err := names.ParsePrincipal(parent)
		return messages.Managed, above, err
	}
	return "", messages.Principal{}, messages.Malformed.Because("kind is interactive or managed")
}

func readAllowance(in *input) messages.Allowance {
	return messages.Allowance{
		Scope: in.texts("scope"), Publish: in.texts("publish"), Subscribe: in.texts("subscribe"),
		Serve: in.flag("serve"), Role: in.text("role"),
	}
}

func checkLabel(label string) error {
	if len(label) > maxLabel || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return messages.Malformed.Because("a label is at most %d bytes of printable text", maxLabel)
	}
	return nil
}

// editGrant answers PUT /v1/grants/{owner}/{actor}: what is not sent is no longer
// granted. The one exception is a rotation of the secret, or a new incarnation, that
// sends nothing else: it leaves everything as it stands.
func (f *Face) editGrant(ctx context.Context, c *call) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	principal, err := c.principal()
	if err != nil {
		return err
	}
	keeps := true
	for _, name := range []string{"scope", "publish", "subscribe", "serve", "role", "label"} {
		keeps = keeps && !in.has(name)
	}
	if !in.has("revision") {
		return messages.Malformed.Because("revision is missing")
	}
	edit := messages.EditGrant{
		Principal: principal, Revision: uint64(in.integer("revision", 1, maxRevision, 0)),
		Allowance: readAllowance(in), Label: in.text("label"), RotateSecret: in.flag("rotate_secret"), By: byOperator,
	}
	anew := in.flag("new_incarnation")
	if err := in.done(); err != nil {
		return err
	}
	wait, err := c.wait(defaultWait)
	if err != nil {
		return err
	}
	if err := checkLabel(edit.Label); err != nil {
		return err
	}
	if err := f.checkAllowance(edit.Allowance); err != nil {
		return err
	}
	keeps = keeps && (edit.RotateSecret || anew)
	if !keeps && !anew {
		return c.written(f.config.Authority.EditGrant(ctx, edit))
	}
	stands, err := f.standing(ctx, edit)
	if err != nil {
		return err
	}
	if keeps {
		edit.Allowance, edit.Label = stands.Allowance, stands.Label
	}
	if !anew {
		return c.written(f.config.Authority.EditGrant(ctx, edit))
	}
	return c.written(f.grantAnew(ctx, c, edit, stands, wait))
}

// standing reads the grant that an edit is of; the revision pins it.
func (f *Face) standing(ctx context.Context, edit messages.EditGrant) (messages.Grant, error) {
	found, err := f.config.Authority.Read(ctx, messages.ReadAuthority{Principal: edit.Principal})
	switch {
	case err != nil:
		return messages.Grant{}, err
	case !found.HasGrant || found.Grant.State != messages.GrantLive:
		return messages.Grant{}, messages.GrantNotFound
	case found.Grant.Revision != edit.Revision:
		return messages.Grant{}, messages.GrantMoved
	}
	return found.Grant, nil
}

// revokeGrant answers DELETE /v1/grants/{owner}/{actor}.
func (f *Face) revokeGrant(ctx context.Context, c *call) error {
	principal, err := c.principal()
	if err != nil {
		return err
	}
	w, err := f.config.Authority.RevokeGrant(ctx, messages.RevokeGrant{Principal: principal, By: byOperator})
	if err != nil {
		return err
	}
	if f.enrolments != nil {
		f.enrolments.Revoked()
	}
	answer := writtenFrom(w)
	if f.config.EndsWithin > 0 && w.Operation != "" {
		answer.EndsBy = f.config.Now().Add(f.config.EndsWithin).UTC()
	}
	c.json(http.StatusOK, answer)
	return nil
}

func (c *call) written(w messages.GrantWritten, err error) error {
	if err != nil {
		return err
	}
	c.json(http.StatusOK, writtenFrom(w))
	return nil
}

// grantView is a grant as an operator sees it; the hash of a secret is no part of it.
type grantView struct {
	Owner     string              `json:"owner"`
	Actor     string              `json:"actor"`
	Kind      messages.GrantKind  `json:"kind"`
	UID       string              `json:"uid"`
	Revision  uint64              `json:"revision"`
	Scope     []string            `json:"scope"`
	Publish   []string            `json:"publish"`
	Subscribe []string            `json:"subscribe"`
	Serve     bool                `json:"serve"`
	Role      string              `json:"role"`
	Parent    string              `json:"parent"`
	Label     string              `json:"label"`
	State     messages.GrantState `json:"state"`
	By        string              `json:"by"`
	At        time.Time           `json:"at"`
}

func viewOf(g messages.Grant) grantView {
	return grantView{
		Owner: g.Principal.Owner, Actor: g.Principal.Actor, Kind: g.Kind, UID: g.UID, Revision: g.Revision,
		Scope: listed(g.Scope), Publish: listed(g.Publish), Subscribe: listed(g.Subscribe), Serve: g.Serve, Role: g.Role,
		Parent: g.Parent.String(), Label: g.Label, State: g.State, By: g.By, At: g.At.UTC(),
	}
}

// listGrants answers GET /v1/grants.
func (f *Face) listGrants(ctx context.Context, c *call) error {
	all, err := f.config.Authority.Grants(ctx)
	if err != nil {
		return err
	}
	views := make([]grantView, len(all.Items))
	for i, g := range all.Items {
		views[i] = viewOf(g)
	}
	c.json(http.StatusOK, map[string]any{"grants": views, "unreadable": listed(all.Unreadable)})
	return nil
}

// showGrant answers GET /v1/grants/{owner}/{actor}, for a revoked grant also.
func (f *Face) showGrant(ctx context.Context, c *call) error {
	principal, err := c.principal()
	if err != nil {
		return err
	}
	found, err := f.config.Authority.Read(ctx, messages.ReadAuthority{Principal: principal})
	if err != nil {
		return err
	}
	if !found.HasGrant {
		return messages.GrantNotFound
	}
	c.json(http.StatusOK, viewOf(found.Grant))
	return nil
}

// principal reads whom the path is about.
func (c *call) principal() (messages.Principal, error) {
	p := messages.Principal{Owner: c.parts["owner"], Actor: c.parts["actor"]}
	if err := names.CheckPrincipal(p); err != nil {
		return p, err
	}
	c.about = p
	return p, nil
}

// listed is never null in JSON.
func listed[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
