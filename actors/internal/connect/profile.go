package connect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// DefaultProfile is the profile of who asks for none: the lists of the grant.
const DefaultProfile = grants.DefaultRole

// Bounds of a profile.
const (
	maxProfiles  = 64
	maxEntries   = 256
	maxResponses = 1000
	maxReplyTTL  = time.Hour
)

// Replies says how a principal that serves may answer: at most Max messages to
// each reply subject, within TTL of the request.
type Replies struct {
	Max int
	TTL time.Duration
}

// Profile is a named permission template. The entries of its lists are NATS
// subject patterns in which {space}, {owner}, {actor} and {uid} are filled in.
// The whole entries {publish} and {subscribe} stand for the lists of the grant;
// a profile that leaves them out narrows, one that adds to them elevates.
//
// The own inbox is always there and `$SYS.>` always denied. Lists that come out
// empty mean nothing, never everything.
type Profile struct {
	// Name is 1 to 64 characters of [A-Za-z0-9_-].
	Name string
	// Publish and Subscribe list what is allowed; the denied lists win over them.
	Publish, Subscribe             []string
	DeniedPublish, DeniedSubscribe []string
	// Serve lets it reply to requests even where the grant does not say so.
	Serve bool
	// Replies bounds what who serves may reply; zero is one message within 2 min.
	Replies Replies
	// Requires lists the scope a bearer needs for this profile.
	Requires []string
	// MaxLife caps the life of a connection, in whole seconds; zero for no cap.
	MaxLife time.Duration
}

// Profiles holds the profiles of one space, read and checked once.
type Profiles struct {
	byName map[string]*profile
	// machines is what managed principals may publish besides, under every profile.
	machines []template
}

// profile is a Profile in the form that a decision uses.
type profile struct {
	publish, subscribe             []template
	deniedPublish, deniedSubscribe []template
	serve                          bool
	replies                        jwt.ResponsePermission
	requires                       []string
	maxLife                        time.Duration
}

// NewProfiles reads the profiles of a space. Where none is called DefaultProfile,
// the default one is the lists of the grant and nothing else. The error lists
// every problem and is messages.Malformed.
func NewProfiles(space string, list []Profile) (*Profiles, error) {
	if err := names.CheckSpace(space); err != nil {
		return nil, err
	}
	if len(list) > maxProfiles {
		return nil, messages.Malformed.Because("%d profiles, at most %d", len(list), maxProfiles)
	}
	all := &Profiles{byName: map[string]*profile{}}
	r := profileReader{space: space}
	for _, p := range list {
		r.name = p.Name
		if all.byName[p.Name] != nil {
			r.problem("it is listed twice")
		}
		all.byName[p.Name] = r.read(p)
	}
	if all.byName[DefaultProfile] == nil {
		all.byName[DefaultProfile] = r.read(Profile{Name: DefaultProfile, Publish: []string{publishList}, Subscribe: []string{subscribeList}})
	}
	if r.problems != nil {
		return nil, messages.Malformed.Because("profiles: %s", strings.Join(r.problems, "; "))
	}
	return all, nil
}

// ForMachines lets managed principals publish to these subjects besides, whichever
// profile they have: patterns as those of a profile, without the lists of the grant. It
// is called before anybody is judged.
func (all *Profiles) ForMachines(space string, publish []string) error {
	r := profileReader{space: space, name: "machines"}
	all.machines = r.templates("publish", publish, "")
	if r.problems != nil {
		return messages.Malformed.Because("%s", strings.Join(r.problems, "; "))
	}
	return nil
}

// profileReader collects the problems of all profiles.
type profileReader struct {
	space, name string
	problems    []string
}

func (r *profileReader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%.70q: ", r.name)+fmt.Sprintf(format, args...))
}

func (r *profileReader) read(p Profile) *profile {
	if err := grants.CheckAllowance(messages.Allowance{Scope: p.Requires, Role: p.Name}); p.Name == "" || err != nil {
		r.problem("its name or what it requires is malformed")
	}
	if p.MaxLife < 0 || p.MaxLife%time.Second != 0 {
		r.problem("its longest life is not in whole seconds")
	}
	replies := Replies{Max: cmp.Or(p.Replies.Max, 1), TTL: cmp.Or(p.Replies.TTL, 2*time.Minute)}
	if replies.Max < 1 || replies.Max > maxResponses || replies.TTL < 0 || replies.TTL > maxReplyTTL {
		r.problem("replies are 1 to %d within at most %s", maxResponses, maxReplyTTL)
	}
	return &profile{
		publish:         r.templates("publish", p.Publish, publishList),
		subscribe:       r.templates("subscribe", p.Subscribe, subscribeList),
		deniedPublish:   r.templates("denied publish", p.DeniedPublish, ""),
		deniedSubscribe: r.templates("denied subscribe", p.DeniedSubscribe, ""),
		serve:           p.Serve,
		replies:         jwt.ResponsePermission{MaxMsgs: replies.Max, Expires: replies.TTL},
		requires:        slices.Clone(p.Requires),
		maxLife:         p.MaxLife,
	}
}

// templates reads one list, in which only the given list of the grant may stand.
func (r *profileReader) templates(list string, entries []string, mayStand string) []template {
	if len(entries) > maxEntries {
		r.problem("%s has %d entries, at most %d", list, len(entries), maxEntries)
		return nil
	}
	read := make([]template, 0, len(entries))
	for _, entry := range entries {
		t, err := parseTemplate(r.space, entry)
		switch {
		case err != nil:
			r.problem("%s %.80q: %s", list, entry, err)
		case t.list != "" && t.list != mayStand:
			r.problem("%s: %s does not belong there", list, t.list)
		default:
			read = append(read, t)
		}
	}
	return read
}
