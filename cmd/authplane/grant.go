package main

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// grantFlags is what `grant` was told.
type grantFlags struct {
	sub, owner, actor         string
	scope, publish, subscribe []string
	serve                     bool
	role, label               string
	managed                   bool
	parent                    string
	edit, rotate, anew        bool
	revision                  uint64
	secretFile                string
	// given reports whether a flag stands on the command line.
	given func(name string) bool
}

func (a *app) grantCommand() *cobra.Command {
	var flags grantFlags
	cmd := &cobra.Command{
		Use: "grant [owner/actor]", GroupID: groupWho, Args: cobra.MaximumNArgs(1),
		Short: "Grant a principal, or change what it may do",
		Long: "Grants a principal: a person's (--sub as the identity provider names them, or\n" +
			"--owner) or, with --managed, a machine's, within what its --parent may do if it\n" +
			"has one. A machine's secret is shown this once, or goes into --secret-file.\n" +
			"What is not named is not granted. Whoever answers requests needs --serve. A pattern\n" +
			"begins with a token of its own: no wildcard, and none of cotal, ep, _R_, or what\n" +
			"begins with $ or _INBOX.\n\n" +
			"A grant over a revoked one waits for the end of the former incarnation. With\n" +
			"--new-incarnation a grant that stands is no hindrance: its incarnation is retired\n" +
			"first, with every connection of it, and the next one starts with nothing.\n\n" +
			"With --edit it changes a grant that stands; flags left out keep what they were,\n" +
			"and a list is emptied by giving it \"\".",
		Example: "  authplane grant --sub alice --actor laptop --publish 'chat.>' --subscribe 'chat.>'\n" +
			"  authplane grant " + exampleOwner + "/robot --managed --parent " + exampleOwner + "/laptop --publish chat.robot --secret-file robot.secret\n" +
			"  authplane grant " + exampleOwner + "/laptop --edit --publish ''",
		RunE: doing(func(ctx context.Context, args []string) error {
			if len(args) == 1 {
				p, err := parsePrincipal(args[0])
				if err != nil {
					return err
				}
				if flags.owner+flags.actor+flags.sub != "" {
					return usage("name the principal once: as owner/actor or with --owner, --sub and --actor")
				}
				flags.owner, flags.actor = p.Owner, p.Actor
			}
			if err := flags.check(); err != nil {
				return err
			}
			return a.grant(ctx, flags)
		}),
	}
	flags.define(cmd.Flags())
	return cmd
}

func (f *grantFlags) define(set *pflag.FlagSet) {
	f.given = set.Changed
	set.StringVar(&f.sub, "sub", "", "the `subject` as the identity provider names it")
	set.StringVar(&f.owner, "owner", "", "the `owner`, instead of --sub")
	set.StringVar(&f.actor, "actor", "", "the `actor`, one of the owner's")
	set.StringSliceVar(&f.scope, "scope", nil, "`capabilities`, by comma or repeated")
	set.StringSliceVar(&f.publish, "publish", nil, "subject `patterns` it may publish to")
	set.StringSliceVar(&f.subscribe, "subscribe", nil, "subject `patterns` it may subscribe to")
	set.BoolVar(&f.serve, "serve", false, "it answers requests: it may publish to their reply subjects")
	set.StringVar(&f.role, "role", "", "the permission `profile`; the default one if left out")
	set.StringVar(&f.label, "label", "", "free `text` for listings")
	set.BoolVar(&f.managed, "managed", false, "a machine's grant: it proves itself with a secret")
	set.StringVar(&f.parent, "parent", "", "the `owner/actor` whose grant bounds a managed one")
	set.BoolVar(&f.edit, "edit", false, "change a grant that stands")
	set.Uint64Var(&f.revision, "revision", 0, "with --edit: the revision `N` it must have; the current one if left out")
	set.BoolVar(&f.rotate, "rotate-secret", false, "with --edit: give a machine a new secret")
	set.BoolVar(&f.anew, "new-incarnation", false, "retire the incarnation that stands, and grant to a new one")
	set.StringVar(&f.secretFile, "secret-file", "", "write a machine's secret, alone, to this `file`, which only you can read")
}

func (f *grantFlags) check() error {
	switch {
	case f.actor == "":
		return usage("--actor is missing")
	case (f.sub == "") == (f.owner == ""):
		return usage("give --sub or --owner, exactly one of them")
	case f.edit && f.owner == "":
		return usage("--edit needs the owner, as `authplane grants` lists it")
	case f.edit && (f.managed || f.parent != ""):
		return usage("--edit changes neither the kind nor the parent of a grant")
	case !f.edit && (f.given("revision") || f.rotate):
		return usage("--revision and --rotate-secret go with --edit")
	case f.parent != "" && !f.managed:
		return usage("--parent goes with --managed")
	case f.secretFile != "" && !f.managed && !f.rotate && !(f.edit && f.anew):
		return usage("--secret-file goes with --managed, --rotate-secret or --edit --new-incarnation")
	}
	return nil
}

func (a *app) grant(ctx context.Context, flags grantFlags) error {
	client, err := a.reach()
	if err != nil {
		return err
	}
	defer client.Close()
	if flags.edit {
		return a.editGrant(ctx, client, flags)
	}
	body, err := flags.newGrant()
	if err != nil {
		return err
	}
	return beneath(flags.parent, a.writeGrant(ctx, client, http.MethodPost, "/v1/grants", body, flags.secretFile))
}

// beneath leads on from what a machine's parents do not allow to their grants: its own is
// not there yet.
func beneath(parent string, err error) error {
	var refused *service.Refusal
	switch {
	case parent == "" || !errors.As(err, &refused):
		return err
	case refused.Reason == messages.ScopeExceeded.Reason:
		return advised{err, "authplane show " + parent}
	case refused.Reason == messages.ParentMissing.Reason:
		return advised{err, "authplane grants"}
	}
	return err
}

// newGrant is the body of a grant that is not there yet.
func (f *grantFlags) newGrant() (map[string]any, error) {
	body := map[string]any{
		"actor": f.actor, "scope": given(f.scope), "publish": given(f.publish),
		"subscribe": given(f.subscribe), "serve": f.serve,
	}
	for name, value := range map[string]string{"sub": f.sub, "owner": f.owner, "role": f.role, "label": f.label} {
		if value != "" {
			body[name] = value
		}
	}
	if f.managed {
		body["kind"] = messages.Managed
	}
	if f.anew {
		body["new_incarnation"] = true
	}
	if f.parent != "" {
		parent, err := parsePrincipal(f.parent)
		if err != nil {
			return nil, err
		}
		body["parent"] = parent.String()
	}
	return body, nil
}

// editGrant sends the whole grant back, changed only where a flag says so. The
// revision keeps it from undoing somebody else's change.
func (a *app) editGrant(ctx context.Context, client *service.Client, f grantFlags) error {
	path := grantPath(messages.Principal{Owner: f.owner, Actor: f.actor})
	answer, err := client.Get(ctx, path)
	if err != nil {
		return err
	}
	var now grantView
	if err := decode(answer, &now); err != nil {
		return err
	}
	body := map[string]any{
		"revision": now.Revision, "scope": now.Scope, "publish": now.Publish, "subscribe": now.Subscribe,
		"serve": now.Serve, "role": now.Role, "label": now.Label,
	}
	for name, value := range map[string]any{
		"revision": f.revision, "scope": given(f.scope), "publish": given(f.publish), "subscribe": given(f.subscribe),
		"serve": f.serve, "role": f.role, "label": f.label,
	} {
		if f.given(name) {
			body[name] = value
		}
	}
	if f.rotate {
		body["rotate_secret"] = true
	}
	if f.anew {
		body["new_incarnation"] = true
	}
	return a.writeGrant(ctx, client, http.MethodPut, path, body, f.secretFile)
}

// given is a list without its empty entries, so that "" empties it; never null.
func given(list []string) []string {
	kept := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	if kept == nil {
		return []string{}
	}
	return kept
}
