package connect_test

import (
	"crypto/ed25519"
	"testing"

	"golang.org/x/crypto/nacl/secretbox"

	"github.com/cotal-ai/authplane/actors/internal/connect"
)

// decision is all that a responder does for one connect, without the reads.
type decision struct {
	site   *site
	judge  *connect.Judge
	sealed []byte
}

func newDecision(b testing.TB) *decision {
	s := newSite(b)
	bearer, _ := standing()
	return &decision{site: s, judge: connect.NewJudge(profiles(b)), sealed: s.seal(b, s.claims(b, s.bearer(b, bearer)))}
}

func (d *decision) make(b testing.TB) {
	_, authority := standing()
	request, err := d.site.opener.Open(d.site.serverX.public, d.sealed)
	must(b, err)
	bearer, err := d.site.bearers.Verify(request.Token.Reveal(), now)
	must(b, err)
	admission, err := d.judge.Decide(bearer, authority, now)
	must(b, err)
	_, err = d.site.answerer.Admit(request, admission, now)
	must(b, err)
}

// primitives are the cryptographic steps of a decision with keys kept ready, on
// inputs of the same sizes: two verifications, two signatures, one box each way.
type primitives struct {
	public          ed25519.PublicKey
	private         ed25519.PrivateKey
	request, bearer []byte
	requestSig      []byte
	bearerSig       []byte
	user, answer    []byte
	shared          [32]byte
	nonce           [24]byte
	sealed          []byte
}

func newPrimitives(b testing.TB, d *decision) *primitives {
	p := &primitives{}
	var err error
	p.public, p.private, err = ed25519.GenerateKey(nil)
	must(b, err)
	bearer, authority := standing()
	admission, err := d.judge.Decide(bearer, authority, now)
	must(b, err)
	request, err := d.site.opener.Open(d.site.serverX.public, d.sealed)
	must(b, err)
	sealed, err := d.site.answerer.Admit(request, admission, now)
	must(b, err)
	user := d.site.unseal(b, sealed).Jwt
	signature := 87 // a dot and 64 bytes, encoded
	p.request = make([]byte, len(d.sealed)-28-secretbox.Overhead-signature)
	p.bearer = make([]byte, len(request.Token.Reveal())-signature)
	p.user = make([]byte, len(user)-signature)
	p.answer = make([]byte, len(sealed)-28-secretbox.Overhead-signature)
	p.requestSig, p.bearerSig = ed25519.Sign(p.private, p.request), ed25519.Sign(p.private, p.bearer)
	p.sealed = secretbox.Seal(nil, make([]byte, len(d.sealed)-28-secretbox.Overhead), &p.nonce, &p.shared)
	return p
}

func (p *primitives) run(b testing.TB) {
	if _, ok := secretbox.Open(nil, p.sealed, &p.nonce, &p.shared); !ok {
		b.Fatal("the box does not open")
	}
	if !ed25519.Verify(p.public, p.request, p.requestSig) || !ed25519.Verify(p.public, p.bearer, p.bearerSig) {
		b.Fatal("a signature does not hold")
	}
	_ = ed25519.Sign(p.private, p.user)
	_ = ed25519.Sign(p.private, p.answer)
	_ = secretbox.Seal(nil, p.answer, &p.nonce, &p.shared)
}

func BenchmarkDecision(b *testing.B) {
	d := newDecision(b)
	b.ReportAllocs()
	for b.Loop() {
		d.make(b)
	}
}

func BenchmarkPrimitives(b *testing.B) {
	p := newPrimitives(b, newDecision(b))
	b.ReportAllocs()
	for b.Loop() {
		p.run(b)
	}
}

func BenchmarkOpen(b *testing.B) {
	d := newDecision(b)
	b.ReportAllocs()
	for b.Loop() {
		_, err := d.site.opener.Open(d.site.serverX.public, d.sealed)
		must(b, err)
	}
}

func BenchmarkVerifyBearer(b *testing.B) {
	s := newSite(b)
	bearer, _ := standing()
	token := s.bearer(b, bearer)
	b.ReportAllocs()
	for b.Loop() {
		_, err := s.bearers.Verify(token, now)
		must(b, err)
	}
}

func BenchmarkDecide(b *testing.B) {
	judge := connect.NewJudge(profiles(b))
	bearer, authority := standing()
	b.ReportAllocs()
	for b.Loop() {
		_, err := judge.Decide(bearer, authority, now)
		must(b, err)
	}
}

func BenchmarkAdmit(b *testing.B) {
	d := newDecision(b)
	bearer, authority := standing()
	admission, err := d.judge.Decide(bearer, authority, now)
	must(b, err)
	request := d.site.open(b, "")
	b.ReportAllocs()
	for b.Loop() {
		_, err := d.site.answerer.Admit(request, admission, now)
		must(b, err)
	}
}
