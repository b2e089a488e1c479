package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// How the id of a retirement looks: a letter that is no hex digit, then hex. Ids of
// takeovers are chosen by whoever asks, and may not look like this, so that nobody
// takes the id of somebody's retirement.
const (
	retirementPrefix = "authplane retirement "
	retirementLetter = "r"
	retirementLength = 32
)

// OperationOf is the id of the one retirement that ends the incarnation uid.
func OperationOf(uid string) string {
	sum := sha256.Sum256([]byte(retirementPrefix + uid))
	return (retirementLetter + hex.EncodeToString(sum[:]))[:retirementLength]
}

// registrationOf is the id of whatever registration is made over the connection of a
// user.
func registrationOf(user string) string {
	sum := sha256.Sum256([]byte("authplane registration " + user))
	return ("g" + hex.EncodeToString(sum[:]))[:retirementLength]
}

func isRetirementID(id string) bool {
	digits, is := strings.CutPrefix(id, retirementLetter)
	return is && len(id) == retirementLength && strings.Trim(digits, "0123456789abcdef") == ""
}
