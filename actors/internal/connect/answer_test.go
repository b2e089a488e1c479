package connect_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"pgregory.net/rapid"

	"github.com/cotal-ai/authplane/actors/internal/connect"
	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

func TestAdmit(t *testing.T) {
	s := newSite(t)
	bearer, authority := standing()
	authority.Grant.Serve = true
	admission, err := connect.NewJudge(profiles(t)).Decide(bearer, authority, now)
	must(t, err)
	request := s.open(t, "")
	sealed, err := s.answerer.Admit(request, admission, now)
	must(t, err)

	answer := s.unseal(t, sealed)
	if answer.Subject != request.UserNkey || answer.Audience != s.server.public || answer.Issuer != s.authSigning.public ||
		answer.IssuerAccount != s.auth.public || answer.Error != "" || answer.IssuedAt != now.Unix() {
		t.Errorf("the answer is %s", answer)
	}
	checkValid(t, answer)
	user, err := jwt.DecodeUserClaims(answer.Jwt)
	must(t, err)
	want := jwt.NewUserClaims(request.UserNkey)
	want.Name = laptop.Name()
	want.Issuer, want.IssuerAccount = s.dataSigning.public, s.data.public
	want.ID, want.IssuedAt, want.Expires = request.ID, now.Unix(), bearer.Expires.Unix()
	want.Tags.Add("uid:" + uid)
	want.Type, want.Version = jwt.UserClaim, 2
	want.Permissions = admission.Permissions
	want.Src = user.Src // nil or empty: any
	if !reflect.DeepEqual(user, want) || len(user.Src) != 0 {
		t.Errorf("the user is\n%s\nwant\n%s", user, want)
	}
}

type validated interface {
	Validate(*jwt.ValidationResults)
}

// checkValid fails on whatever the server would refuse, times aside: these tests
// have a clock of their own.
func checkValid(t *testing.T, c validated) {
	t.Helper()
	var found jwt.ValidationResults
	c.Validate(&found)
	for _, issue := range found.Issues {
		if !issue.TimeCheck {
			t.Errorf("the server would refuse it: %s", issue.Description)
		}
	}
}

// Workers share an opener and an answerer: what one works on never shows in what
// another answers.
func TestDecisionsAtTheSameTime(t *testing.T) {
	type job struct {
		bearer    identity.Bearer
		authority messages.Authority
		claims    *jwt.AuthorizationRequestClaims
		sealed    []byte
		request   connect.Request
		answer    []byte
		err       error
	}
	s := newSite(t)
	judge := connect.NewJudge(profiles(t))
	jobs := make([]job, 120)
	for i := range jobs {
		j := &jobs[i]
		j.bearer, j.authority = standing()
		who := messages.Principal{Owner: laptop.Owner, Actor: fmt.Sprintf("w%d", i)}
		j.bearer.Principal, j.authority.Head.Principal, j.authority.Grant.Principal = who, who, who
		j.claims = s.claims(t, s.bearer(t, j.bearer)+strings.Repeat(" ", i*50))
		j.sealed = s.seal(t, j.claims)
	}
	decide := func(j *job) {
		if j.request, j.err = s.opener.Open(s.serverX.public, j.sealed); j.err != nil {
			return
		}
		var admission connect.Admission
		if admission, j.err = judge.Decide(j.bearer, j.authority, now); j.err == nil {
			j.answer, j.err = s.answerer.Admit(j.request, admission, now)
		}
	}
	const workers = 6
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for i := w; i < len(jobs); i += workers {
				decide(&jobs[i])
			}
		})
	}
	working.Wait()
	for _, j := range jobs {
		must(t, j.err)
		user, err := jwt.DecodeUserClaims(s.unseal(t, j.answer).Jwt)
		must(t, err)
		if user.Name != j.bearer.Principal.Name() || user.Subject != j.claims.UserNkey || j.request.Token.Reveal() != j.claims.ConnectOptions.Token {
			t.Errorf("%s was answered with %s", j.bearer.Principal, user)
		}
	}
}

// What is written by hand reads back the same through the library, whatever the
// patterns hold.
func TestTokensReadBack(t *testing.T) {
	s := newSite(t)
	request := s.open(t, "")
	pattern := rapid.StringMatching(`[ -~é€\x00-\x1f"\\<>&]{1,12}`)
	list := rapid.SliceOfN(pattern, 0, 4)
	rapid.Check(t, func(rt *rapid.T) {
		var adm connect.Admission
		adm.Principal, adm.UID, adm.Expires = laptop, uid, now.Add(time.Duration(rapid.IntRange(1, 900).Draw(rt, "life"))*time.Second)
		adm.Permissions.Pub = jwt.Permission{Allow: list.Draw(rt, "publish"), Deny: append(list.Draw(rt, "not publish"), ">")}
		adm.Permissions.Sub = jwt.Permission{Allow: list.Draw(rt, "subscribe"), Deny: append(list.Draw(rt, "not subscribe"), ">")}
		if rapid.Bool().Draw(rt, "serves") {
			adm.Permissions.Resp = &jwt.ResponsePermission{MaxMsgs: rapid.IntRange(1, 9).Draw(rt, "max"), Expires: time.Minute}
		}
		sealed, err := s.answerer.Admit(request, adm, now)
		must(t, err)
		user, err := jwt.DecodeUserClaims(s.unseal(t, sealed).Jwt)
		must(t, err)
		if got, want := lists(user.Permissions), lists(adm.Permissions); got != want {
			rt.Fatalf("got  %s\nwant %s", got, want)
		}
		if user.Expires != adm.Expires.Unix() {
			rt.Fatalf("it expires at %d, want %d", user.Expires, adm.Expires.Unix())
		}
	})
}

// lists writes permissions down so that nil and empty are alike.
func lists(p jwt.Permissions) string {
	return fmt.Sprintf("%q %q %q %q %+v", []string(p.Pub.Allow), []string(p.Pub.Deny), []string(p.Sub.Allow), []string(p.Sub.Deny), p.Resp)
}

func TestDeny(t *testing.T) {
	s := newSite(t)
	request := s.open(t, "")
	for _, entry := range []messages.Error{messages.ProofMissing, messages.ProofInvalid, messages.ProofExpired, messages.NotGranted, messages.GrantKindMismatch,
		messages.ScopeExceeded, messages.ParentMissing, messages.ProfileUnknown, messages.IncarnationEnded, messages.GateShut, messages.CredentialGone, messages.CredentialExpired} {
		sealed, err := s.answerer.Deny(request, fmt.Errorf("decide: %w", entry), now)
		must(t, err)
		answer := s.unseal(t, sealed)
		checkValid(t, answer)
		if answer.Subject != request.UserNkey || answer.Audience != s.server.public || answer.Issuer != s.authSigning.public || answer.Jwt != "" {
			t.Errorf("the answer is %s", answer)
		}
		if !strings.HasPrefix(answer.Error, entry.Reason+": ") || !strings.Contains(answer.Error, request.ID) {
			t.Errorf("%s is denied with %q", entry.Reason, answer.Error)
		}
	}
}

// E085. Whatever a case has to say of itself, the refusal is short, printable, and
// says nothing but what the catalogue says.
func TestDenyTextIsClosed(t *testing.T) {
	s := newSite(t)
	for _, detail := range []string{"🔥 émoji", "two\nlines", strings.Repeat("x", 10_000), "\x00\xff"} {
		request := s.open(t, "")
		sealed, err := s.answerer.Deny(request, messages.NotGranted.Because("%s", detail), now)
		must(t, err)
		if got, want := s.unseal(t, sealed).Error, "grant.absent: not granted (request "+request.ID+")"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is our own inability, or a fault of the request, is never stated to a client.
func TestDenyRefusesInability(t *testing.T) {
	s := newSite(t)
	request := s.open(t, "")
	for _, err := range []error{messages.Unproved, messages.Busy, messages.TooLate, messages.BrokerAway, messages.ActorAway, messages.ServiceClosing,
		messages.InternalFault, messages.RowCorrupt, messages.RequestForged, messages.RequestUnsealed, messages.Malformed, messages.StreamForeign,
		errors.New("anything"), nil, messages.Error{Code: messages.PermissionDenied, Reason: "made up"}} {
		if connect.KindOf(err) != messages.Unanswered {
			t.Errorf("%v would be answered", err)
		}
		if sealed, denied := s.answerer.Deny(request, err, now); denied == nil || sealed != nil {
			t.Errorf("%v was stated to a client", err)
		}
	}
}

func TestAnswersNeedAnOpenedRequest(t *testing.T) {
	s := newSite(t)
	made := connect.Request{ID: "x", ServerID: s.server.public, UserNkey: newKey(t, nkeys.PrefixByteUser).public}
	if _, err := s.answerer.Deny(made, messages.NotGranted, now); !errors.Is(err, messages.InternalFault) {
		t.Errorf("got %v", err)
	}
}

func TestAdmitRefusesWhatIsOver(t *testing.T) {
	s := newSite(t)
	bearer, authority := standing()
	admission, err := connect.NewJudge(profiles(t)).Decide(bearer, authority, now)
	must(t, err)
	if _, err := s.answerer.Admit(s.open(t, ""), admission, admission.Expires); !errors.Is(err, messages.InternalFault) {
		t.Errorf("a user that has expired was minted: %v", err)
	}
}
