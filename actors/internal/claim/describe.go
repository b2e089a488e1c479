package claim

import (
	"errors"
	"fmt"
	"time"
)

// Told is what an operator is told of a refusal of Acquire: who stands in the way and
// since when, where that is why.
func Told(err error) string {
	var because standing
	if errors.As(err, &because) {
		return describe(because)
	}
	return err.Error()
}

// describe tells an operator who stands in the way, and what is known of him. It
// sends nobody after a process that may be gone already.
func describe(s standing) string {
	text := fmt.Sprintf("%s: claimed on %s at %s", s.refusal.Message, s.holder.Host, s.holder.OpenedAt.Format(time.RFC3339))
	if notes := s.text(); notes != "" {
		text += ": " + notes
	}
	return text + "; " + s.refusal.Operator
}
