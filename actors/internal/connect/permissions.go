package connect

import (
	"slices"
	"strings"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/messages"
)

// serverSubjects are denied to every principal both ways: whoever may ask there
// reads all connections of the account, with their tokens.
const serverSubjects = "$SYS.>"

// besides is what principals of a kind may publish, whatever their profile says.
func (all *Profiles) besides(kind messages.GrantKind) []template {
	if kind == messages.Managed {
		return all.machines
	}
	return nil
}

// permissions fills the profile in for somebody, and what he may publish besides. The
// grant's lists are checked once more: this is the last place at which a garbled record
// could become a permission.
func (p *profile) permissions(s subjectOf, allowed messages.Allowance, besides []template) (jwt.Permissions, error) {
	if err := grants.CheckAllowance(allowed); err != nil {
		return jwt.Permissions{}, messages.RowCorrupt.From(err)
	}
	var out jwt.Permissions
	out.Pub.Allow = fillAll(p.publish, s, allowed.Publish, len(besides))
	for _, t := range besides {
		out.Pub.Allow = append(out.Pub.Allow, t.fill(s))
	}
	out.Pub.Deny = append(fillAll(p.deniedPublish, s, nil, 2), serverSubjects)
	if len(out.Pub.Allow) == 0 {
		// The server reads an empty list as everything. Replies work past this.
		out.Pub.Deny = append(out.Pub.Deny, ">")
	}
	out.Sub.Allow = append(fillAll(p.subscribe, s, allowed.Subscribe, 1), s.principal.InboxPrefix()+".>")
	if s.endpoint != "" {
		out.Sub.Allow = append(out.Sub.Allow, discovery(s.endpoint)...)
	}
	out.Sub.Deny = append(fillAll(p.deniedSubscribe, s, nil, 1), serverSubjects)
	out.Sub.Deny = append(out.Sub.Deny, beyond(out.Sub.Allow)...)
	if p.serve || allowed.Serve {
		replies := p.replies
		out.Resp = &replies
	}
	return out, nil
}

// discovery is where a NATS micro service answers who looks for services, or for it. It
// has its endpoint for its name; ids are of its own making.
func discovery(endpoint string) []string {
	var subjects []string
	for _, verb := range []string{"$SRV.PING", "$SRV.INFO", "$SRV.STATS"} {
		subjects = append(subjects, verb, verb+"."+endpoint, verb+"."+endpoint+".*")
	}
	return subjects
}

// beyond lists what the server would deliver past the allowed subscriptions. It
// matches the subject of a subscription as if it were a plain one, so that `a.*`
// admits a subscription to `a.>` also; denying `a.*.>` keeps what that delivers to
// what `a.*` means. Where another allowed pattern reaches below `a.*`, nothing can
// be denied without taking that away, and the wider subscription stands.
func beyond(allowed []string) []string {
	var deny []string
	for _, pattern := range allowed {
		if !strings.HasSuffix(pattern, ".*") {
			continue
		}
		deeper := pattern + ".>"
		reached := func(other string) bool { return grants.Overlap(other, deeper) }
		if !slices.ContainsFunc(allowed, reached) && !slices.Contains(deny, deeper) {
			deny = append(deny, deeper)
		}
	}
	return deny
}

// fillAll fills a list in, with room for more entries behind it.
func fillAll(list []template, s subjectOf, granted []string, more int) jwt.StringList {
	if len(list) == 0 && more == 0 {
		return nil
	}
	out := make(jwt.StringList, 0, len(list)+len(granted)+more)
	for _, t := range list {
		if t.list != "" {
			out = append(out, granted...)
		} else {
			out = append(out, t.fill(s))
		}
	}
	return out
}
