package messages

import "testing"

// What is about somebody leads to him, unless he is what was not found.
func TestNextIsAboutWhomItConcerns(t *testing.T) {
	about := Principal{Owner: "u_a", Actor: "laptop"}
	for want, entry := range map[string]Error{
		"authplane show u_a/laptop":   GrantMoved,
		"authplane retire u_a/laptop": IncarnationStanding,
		"authplane grants":            GrantNotFound,
		"authplane operations":        GateShut,
	} {
		if got := entry.NextFor(about); got != want {
			t.Errorf("%s: %q, not %q", entry.Reason, got, want)
		}
	}
	if got := IncarnationEnded.NextFor(Principal{}); got != "authplane grants" {
		t.Errorf("about nobody: %q", got)
	}
}
