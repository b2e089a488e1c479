package space

import (
	"strings"

	"github.com/cotal-ai/authplane/messages"
)

// joinProblems makes one error of everything that is wrong, or none.
func joinProblems(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return messages.Malformed.Because("%s", strings.Join(problems, "; "))
}
