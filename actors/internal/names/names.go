package names

import (
	"crypto/rand"
	"math/big"
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// Limits of names, in bytes.
const (
	MaxSpace = 32
	MaxActor = 64

	ownerTail = 26 // characters behind `u_` or `p_`
	uidMin    = 26
	uidMax    = 32
	uidBytes  = 20
)

// LocalOwner owns the infrastructure. It is never admitted through the callout.
const LocalOwner = "local"

// CheckSpace refuses a space name that is not [a-z0-9] followed by up to 31 of
// [a-z0-9_-]. A space stands in subjects, stream names and file names.
func CheckSpace(space string) error {
	if space == "" || len(space) > MaxSpace || !isLowerAlnum(space[0]) || !all(space, isSpaceByte) {
		return messages.Malformed.Because("a space is 1 to %d characters of [a-z0-9_-], the first one alphanumeric", MaxSpace)
	}
	return nil
}

// CheckOwner refuses what cannot own a person's or a platform's principals: `u_`
// or `p_` and 26 characters of lower-case base32.
func CheckOwner(owner string) error {
	if len(owner) != 2+ownerTail || (owner[:2] != "u_" && owner[:2] != "p_") || !all(owner[2:], isBase32) {
		return messages.Malformed.Because("an owner is u_ and %d characters of lower-case base32", ownerTail)
	}
	return nil
}

// CheckActor refuses an actor that is not 1 to 64 characters of [A-Za-z0-9_].
func CheckActor(actor string) error {
	if actor == "" || len(actor) > MaxActor || !all(actor, isWord) {
		return messages.Malformed.Because("an actor is 1 to %d characters of [A-Za-z0-9_]", MaxActor)
	}
	return nil
}

// CheckPrincipal refuses a principal whose owner or actor is malformed.
func CheckPrincipal(p messages.Principal) error {
	if err := CheckOwner(p.Owner); err != nil {
		return err
	}
	return CheckActor(p.Actor)
}

// ParsePrincipal reads the dotted form, `<owner>.<actor>`.
func ParsePrincipal(dotted string) (messages.Principal, error) {
	owner, actor, found := strings.Cut(dotted, ".")
	if !found {
		return messages.Principal{}, messages.Malformed.Because("a principal is <owner>.<actor>")
	}
	p := messages.Principal{Owner: owner, Actor: actor}
	if err := CheckPrincipal(p); err != nil {
		return messages.Principal{}, err
	}
	return p, nil
}

// CheckUID refuses what cannot name an incarnation, an operation, an instance or
// a root credential: 26 to 32 characters of [a-z0-9].
func CheckUID(uid string) error {
	if len(uid) < uidMin || len(uid) > uidMax || !all(uid, isLowerAlnum) {
		return messages.Malformed.Because("an incarnation is named by %d to %d characters of [a-z0-9]", uidMin, uidMax)
	}
	return nil
}

// NewUID names something for the first and only time: 160 random bits.
func NewUID() string {
	var raw [uidBytes]byte
	_, _ = rand.Read(raw[:]) // cannot fail: without randomness the process ends
	digits := new(big.Int).SetBytes(raw[:]).Text(36)
	return strings.Repeat("0", max(0, uidMin-len(digits))) + digits
}

func all(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isLowerAlnum(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
func isSpaceByte(c byte) bool  { return isLowerAlnum(c) || c == '_' || c == '-' }
func isBase32(c byte) bool     { return 'a' <= c && c <= 'z' || '2' <= c && c <= '7' }
func isWord(c byte) bool       { return isLowerAlnum(c) || 'A' <= c && c <= 'Z' || c == '_' }
