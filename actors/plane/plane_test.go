package plane

import (
	"slices"
	"testing"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/reader"
	"github.com/cotal-ai/authplane/supervisor"
)

// nowhere remembers no stream.
type nowhere struct{}

func (nowhere) Remembered() stream.Installation    { return stream.Installation{} }
func (nowhere) Remember(stream.Installation) error { return nil }

func spec(outlives time.Duration) *supervisor.Group {
	return Spec(Config{Outlives: outlives, Unreadable: &reader.Unreadable{}, Installation: nowhere{}, Records: nowhere{},
		Account: func(trust.Account) string { return "A" }}).Group
}

// Every child closes in exactly one stage, with a way into the system account and
// without; and without one there is nobody who kicks.
func TestEveryChildClosesOnce(t *testing.T) {
	with, without := spec(0), spec(time.Minute)
	for _, group := range []*supervisor.Group{with, without} {
		var closed []string
		for _, stage := range group.Stages {
			closed = append(closed, stage.Close...)
		}
		children := namesOf(group.Children)
		slices.Sort(children)
		slices.Sort(closed)
		if !slices.Equal(children, closed) {
			t.Errorf("of %q these close: %q", children, closed)
		}
	}
	rest := slices.DeleteFunc(namesOf(with.Children), func(name string) bool { return name == "evictor" })
	if got := namesOf(without.Children); !slices.Equal(got, rest) || len(got) == len(with.Children) {
		t.Errorf("without: %q, with: %q", got, namesOf(with.Children))
	}
}
