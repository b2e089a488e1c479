package connect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

const inbox = "_INBOX_u_7ddcihobiesn4x46pu2mxn2qee-laptop.>"

// admitUnder admits the standing bearer under a profile called x.
func admitUnder(t *testing.T, p connect.Profile, change func(*identity.Bearer, *messages.Authority)) connect.Admission {
	t.Helper()
	p.Name = "x"
	bearer, authority := standing()
	authority.Grant.Role = "x"
	if change != nil {
		change(&bearer, &authority)
	}
	admission, err := connect.NewJudge(profiles(t, p)).Decide(bearer, authority, now)
	must(t, err)
	return admission
}

func TestDefaultProfileIsTheGrant(t *testing.T) {
	bearer, authority := standing()
	admission, err := connect.NewJudge(profiles(t)).Decide(bearer, authority, now)
	must(t, err)
	p := admission.Permissions
	if !slices.Equal(p.Pub.Allow, []string{"chat.>", "jobs.*.start"}) || !slices.Equal(p.Pub.Deny, []string{"$SYS.>"}) {
		t.Errorf("publish is %v", p.Pub)
	}
	if !slices.Equal(p.Sub.Allow, []string{"chat.>", "news", inbox}) || !slices.Equal(p.Sub.Deny, []string{"$SYS.>"}) {
		t.Errorf("subscribe is %v", p.Sub)
	}
	if p.Resp != nil || admission.Profile != connect.DefaultProfile {
		t.Errorf("got %+v", admission)
	}
}

// E117. An empty list is nothing, never everything and never a default.
func TestEmptyListsMeanNothing(t *testing.T) {
	bearer, authority := standing()
	authority.Grant.Publish, authority.Grant.Subscribe = nil, nil
	admission, err := connect.NewJudge(profiles(t)).Decide(bearer, authority, now)
	must(t, err)
	p := admission.Permissions
	if len(p.Pub.Allow) != 0 || !slices.Contains(p.Pub.Deny, ">") {
		t.Errorf("publish is %v", p.Pub)
	}
	if !slices.Equal(p.Sub.Allow, []string{inbox}) {
		t.Errorf("subscribe is %v", p.Sub)
	}
}

func TestTemplates(t *testing.T) {
	admission := admitUnder(t, connect.Profile{
		Publish:         []string{"{space}.{owner}.{actor}.>", "$JS.API.STREAM.INFO.chat_{space}", "{publish}", "a-{uid}-b"},
		Subscribe:       []string{"{space}.in.{owner}-{actor}", "{owner}.>"},
		DeniedPublish:   []string{"{space}.{owner}.{actor}.admin.>"},
		DeniedSubscribe: []string{"jobs.secret"},
	}, nil)
	p := admission.Permissions
	for what, got := range map[string][2][]string{
		"publish":            {p.Pub.Allow, {"main." + laptop.Owner + ".laptop.>", "$JS.API.STREAM.INFO.chat_main", "chat.>", "jobs.*.start", "a-" + uid + "-b"}},
		"publish, denied":    {p.Pub.Deny, {"main." + laptop.Owner + ".laptop.admin.>", "$SYS.>"}},
		"subscribe, no list": {p.Sub.Allow, {"main.in." + laptop.Name(), laptop.Owner + ".>", inbox}},
		"subscribe, denied":  {p.Sub.Deny, {"jobs.secret", "$SYS.>"}},
	} {
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%s is %v, want %v", what, got[0], got[1])
		}
	}
}

// The server takes an allowed `a.*` for `a.>` also; what that would add is denied,
// unless something else that is allowed lies there.
func TestLastWildcards(t *testing.T) {
	for _, c := range []struct{ allowed, denied []string }{
		{[]string{"a.*", "b.*.c", "c.>", "d"}, []string{"a.*.>"}},
		{[]string{"a.*", "a.*"}, []string{"a.*.>"}},
		{[]string{"a.*", "a.>"}, nil},
		{[]string{"a.*", "a.b.c"}, nil},
		{[]string{"a.*.*", "a.b", "x.*"}, []string{"a.*.*.>", "x.*.>"}},
	} {
		admission := admitUnder(t, connect.Profile{Subscribe: []string{"{subscribe}"}}, func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Subscribe = c.allowed })
		if got, want := admission.Permissions.Sub.Deny, append([]string{"$SYS.>"}, c.denied...); !slices.Equal(got, want) {
			t.Errorf("%v: denied is %v, want %v", c.allowed, got, want)
		}
	}
}

func TestServing(t *testing.T) {
	serving := func(_ *identity.Bearer, a *messages.Authority) { a.Grant.Serve = true }
	cases := []struct {
		what    string
		profile connect.Profile
		change  func(*identity.Bearer, *messages.Authority)
		max     int
		ttl     time.Duration
	}{
		{"nobody says so", connect.Profile{}, nil, 0, 0},
		{"the grant says so", connect.Profile{}, serving, 1, 2 * time.Minute},
		{"the profile says so", connect.Profile{Serve: true, Replies: connect.Replies{Max: 10, TTL: time.Second}}, nil, 10, time.Second},
		{"both say so", connect.Profile{Serve: true, Replies: connect.Replies{Max: 3}}, serving, 3, 2 * time.Minute},
	}
	for _, c := range cases {
		got := admitUnder(t, c.profile, c.change).Permissions.Resp
		switch {
		case c.max == 0 && got != nil:
			t.Errorf("%s: got %+v", c.what, got)
		case c.max != 0 && (got == nil || got.MaxMsgs != c.max || got.Expires != c.ttl):
			t.Errorf("%s: got %+v, want %d within %s", c.what, got, c.max, c.ttl)
		}
	}
}

// E122. What could yield an empty token, or reach what is nobody's, is refused when
// the profiles are read, with every problem at once.
func TestNewProfilesRefusals(t *testing.T) {
	bad := map[string]string{
		"":                 "not a subject pattern",
		"a.{nonce}":        "no variable",
		"a.{}":             "no variable",
		"a.{owner":         "not closed",
		"a.owner}":         "closed that was not opened",
		"a.{{owner}}":      "no variable",
		"a..b":             "not a subject pattern",
		".a":               "not a subject pattern",
		"a.":               "not a subject pattern",
		"a.>.b":            "not a subject pattern",
		"a b":              "not a subject pattern",
		"a.{owner}*":       "not a subject pattern",
		">":                "wildcard",
		"*.a":              "wildcard",
		"$SYS.REQ.>":       "reserved",
		"_INBOX.>":         "reserved",
		"_INBOX_{owner}.>": "reserved",
		"_R_.>":            "reserved",
		"{actor}.>":        "first token",
		"x{actor}.>":       "first token",
		"a.{publish}":      "no variable",
		"{subscribe}":      "does not belong",
		"{Owner}.a":        "no variable",
	}
	for entry, says := range bad {
		_, err := connect.NewProfiles(space, []connect.Profile{{Name: "x", Publish: []string{entry}}})
		if !errors.Is(err, messages.Malformed) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want it to say %q", entry, err, says)
		}
	}
	for what, p := range map[string]connect.Profile{
		"no name":           {},
		"a bad name":        {Name: "a b"},
		"a bad scope":       {Name: "x", Requires: []string{"a b"}},
		"a negative life":   {Name: "x", MaxLife: -time.Second},
		"half a second":     {Name: "x", MaxLife: time.Second / 2},
		"too many replies":  {Name: "x", Replies: connect.Replies{Max: 1001}},
		"negative replies":  {Name: "x", Replies: connect.Replies{Max: -1}},
		"too long to reply": {Name: "x", Replies: connect.Replies{TTL: 2 * time.Hour}},
		"a list denied":     {Name: "x", DeniedPublish: []string{"{publish}"}},
		"too many entries":  {Name: "x", Publish: slices.Repeat([]string{"a"}, 257)},
	} {
		if _, err := connect.NewProfiles(space, []connect.Profile{p}); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: got %v, want %v", what, err, messages.Malformed)
		}
	}
	if _, err := connect.NewProfiles("No Space", nil); !errors.Is(err, messages.Malformed) {
		t.Errorf("got %v", err)
	}
	_, err := connect.NewProfiles(space, []connect.Profile{{Name: "x", Publish: []string{"a..b", ">"}}, {Name: "x", Subscribe: []string{"{nope}"}}})
	for _, part := range []string{`"a..b"`, `">"`, `"{nope}"`, "twice"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}

// E123. Whatever the template is, if it is accepted, then every subject it yields
// is one the broker takes, with the template's own wildcards and no others, and
// outside of everybody's inbox and the servers' subjects.
func TestProducedSubjects(t *testing.T) {
	token := rapid.StringMatching(`(\{owner\}|\{actor\}|\{uid\}|\{space\}|a|-|_|\*|>|\$|_INBOX|_R_|\{|\}|\.){1,3}`)
	actor := rapid.StringMatching(`[A-Za-z0-9_]{1,64}`)
	accepted := 0
	rapid.Check(t, func(rt *rapid.T) {
		entry := strings.Join(rapid.SliceOfN(token, 1, 4).Draw(rt, "tokens"), ".")
		all, err := connect.NewProfiles(space, []connect.Profile{{Name: "x", Publish: []string{entry}, Subscribe: []string{entry}, DeniedPublish: []string{entry}}})
		if err != nil {
			return
		}
		accepted++
		bearer, authority := standing()
		who := messages.Principal{Owner: laptop.Owner, Actor: rapid.OneOf(actor, rapid.SampledFrom([]string{"_R_", "_INBOX_x", "cotal"})).Draw(rt, "actor")}
		bearer.Principal, authority.Head.Principal, authority.Grant.Principal, authority.Grant.Role = who, who, who, "x"
		admission, err := connect.NewJudge(all).Decide(bearer, authority, now)
		must(t, err)
		p := admission.Permissions
		for _, subject := range slices.Concat(p.Pub.Allow, p.Sub.Allow[:1], p.Pub.Deny[:1]) {
			if !server.IsValidSubject(subject) {
				rt.Fatalf("%q yields %q", entry, subject)
			}
			if strings.Count(subject, "*") != strings.Count(entry, "*") || strings.Count(subject, ">") != strings.Count(entry, ">") {
				rt.Fatalf("%q yields %q, with other wildcards", entry, subject)
			}
			for _, never := range []string{"$SYS.>", "_INBOX.>", "_INBOX_u_x-y.>", "_R_.>"} {
				if server.SubjectsCollide(subject, never) {
					rt.Fatalf("%q yields %q, which reaches %q", entry, subject, never)
				}
			}
		}
	})
	if accepted == 0 {
		t.Fatal("no template was accepted: nothing was tested")
	}
}
