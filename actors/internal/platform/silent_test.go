package platform_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/messages"
)

// word is a platform that answers as it likes.
type word func(context.Context) (messages.Assignment, bool, error)

func (w word) Assignment(ctx context.Context) (messages.Assignment, bool, error) { return w(ctx) }

// A platform that hangs, dies or raves is one that does not tell, or has assigned
// something else: nobody waits for it longer than he wants to, nor for ever.
func TestAPlatformThatCannotBeReliedUpon(t *testing.T) {
	ours := account(t)
	at := messages.PlatformPlace{Space: "main", Account: ours, Revision: 1, Endpoint: "billing", Instance: strings.Repeat("a", 26)}
	assigned := messages.Assignment{Account: ours, Revision: 1, Endpoint: at.Endpoint, Instance: at.Instance}
	for name, c := range map[string]struct {
		says    func(ctx context.Context, over <-chan struct{}) (messages.Assignment, bool, error)
		patient bool
		want    error
	}{
		"it hangs, and nobody leaves": {patient: true, want: messages.PlatformAway,
			says: func(_ context.Context, over <-chan struct{}) (messages.Assignment, bool, error) {
				<-over
				return assigned, true, nil
			}},
		"it hangs, and the asker leaves": {want: errLeft,
			says: func(_ context.Context, over <-chan struct{}) (messages.Assignment, bool, error) {
				<-over
				return assigned, true, nil
			}},
		"it returns when nobody waits": {patient: true, want: messages.PlatformAway,
			says: func(ctx context.Context, _ <-chan struct{}) (messages.Assignment, bool, error) {
				<-ctx.Done()
				return assigned, true, ctx.Err()
			}},
		"it panics": {want: messages.PlatformAway,
			says: func(context.Context, <-chan struct{}) (messages.Assignment, bool, error) { panic("lost") }},
		"it panics with nothing": {want: messages.PlatformAway,
			says: func(context.Context, <-chan struct{}) (messages.Assignment, bool, error) { panic(error(nil)) }},
		"it ends": {want: messages.PlatformAway,
			says: func(context.Context, <-chan struct{}) (messages.Assignment, bool, error) {
				runtime.Goexit()
				return assigned, true, nil
			}},
		"it raves": {want: messages.NotAssigned,
			says: func(context.Context, <-chan struct{}) (messages.Assignment, bool, error) {
				return messages.Assignment{Account: ours, Revision: 1, Endpoint: strings.Repeat("x", 1<<20), Instance: "*.>"}, true, nil
			}},
		"it names nothing": {want: messages.NotAssigned,
			says: func(context.Context, <-chan struct{}) (messages.Assignment, bool, error) {
				return messages.Assignment{}, true, nil
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				door, err := platform.Open("main", ours, identity.NewOwnerSecret(), word(func(ctx context.Context) (messages.Assignment, bool, error) { return c.says(ctx, over) }))
				if err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if !c.patient {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeoutCause(ctx, time.Second, errLeft)
					defer cancel()
				}
				got, err := door.Admit(ctx, at)
				if !errors.Is(err, c.want) || got != (messages.Assignment{}) {
					t.Errorf("got %+v, %v", got, err)
				}
				close(over)
			})
		})
	}
}

var errLeft = errors.New("the asker leaves")

// One that never returns is not asked without end, and is asked again once it does.
func TestAPlatformThatHangsIsNotAskedWithoutEnd(t *testing.T) {
	ours := account(t)
	at := messages.PlatformPlace{Space: "main", Account: ours, Revision: 1, Endpoint: "billing", Instance: strings.Repeat("a", 26)}
	synctest.Test(t, func(t *testing.T) {
		over, asked := make(chan struct{}), make(chan struct{}, 1<<16) // more than it is asked
		door, err := platform.Open("main", ours, identity.NewOwnerSecret(), word(func(context.Context) (messages.Assignment, bool, error) {
			asked <- struct{}{}
			<-over
			return messages.Assignment{Account: ours, Revision: 1, Endpoint: at.Endpoint, Instance: at.Instance}, true, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errLeft)
		const questions = 10_000
		for range questions {
			if _, err := door.Admit(gone, at); !errors.Is(err, errLeft) {
				t.Fatalf("got %v", err)
			}
		}
		if _, err := door.Admit(t.Context(), at); !errors.Is(err, messages.PlatformAway) {
			t.Errorf("while none is answered: %v", err)
		}
		if n := len(asked); n == 0 || n >= questions {
			t.Errorf("it is asked %d times", n)
		}
		close(over)
		synctest.Wait()
		if _, err := door.Admit(t.Context(), at); err != nil {
			t.Errorf("after it returned: %v", err)
		}
	})
}
