package connect

import (
	"github.com/cotal-ai/authplane/messages"
)

// maxDenialText bounds the text of a refusal, in bytes.
const maxDenialText = 256

// KindOf says whether a connect that failed with err is answered. Denied is only
// what states a fact about the proof or the principal, from a closed set of
// entries. Everything else, our own inability above all, is met with silence: two
// equal refusals make a client give up for good, silence leaves it retrying.
func KindOf(err error) messages.DecisionKind {
	switch messages.Describe(err) {
	case messages.ProofMissing, messages.ProofInvalid, messages.ProofExpired,
		messages.NotGranted, messages.GrantKindMismatch, messages.ScopeExceeded, messages.ParentMissing, messages.ProfileUnknown,
		messages.IncarnationEnded, messages.GateShut, messages.CredentialGone, messages.CredentialExpired,
		messages.InstanceNotFound, messages.InstanceForeign, messages.InstanceSuperseded, messages.InstanceNotOpen:
		return messages.Denied
	}
	return messages.Unanswered
}

// denialText is what the server writes to its log. It carries the stable reason and
// the id that explains it, never the detail of the case.
func denialText(id string, entry messages.Error) []byte {
	return foldASCII(entry.Reason + ": " + entry.Message + " (request " + id + ")")
}

// foldASCII makes a text printable ASCII of bounded length, and without what JSON
// would escape, so that an answer can always be encoded and never breaks a log line.
func foldASCII(s string) []byte {
	out := make([]byte, 0, min(len(s), maxDenialText))
	for _, r := range s {
		if len(out) == maxDenialText {
			break
		}
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return out
}
