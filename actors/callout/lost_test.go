package callout

import (
	"errors"
	"testing"

	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
)

// E090. A responder whose connection the server ends is in the group again, and hears
// each connect once.
func TestALostConnectionIsBackInTheGroup(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.becomes(1, 0)
	for range 3 {
		in, _ := s.members()
		s.must(s.space.Server.Native().DisconnectClientByID(in[0]))
		natsdtest.Eventually(t, "another connection is in the group", func() error {
			if now, _ := s.members(); len(now) != 1 || now[0] == in[0] {
				return errors.New("not yet")
			}
			return nil
		})
		before := len(s.denials.List())
		for range 5 {
			s.isRefused()
		}
		s.heard(before + 5) // each once: it is recorded after it was answered
	}
}
