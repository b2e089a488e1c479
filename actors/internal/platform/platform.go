// Package platform decides what whoever hosts a space may do there: what is assigned at
// this moment, and nothing else. It knows no actor and no broker.
package platform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/identity"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// answerWithin is how long the platform may think.
	answerWithin = 10 * time.Second
	// maxAsking bounds the questions that are not answered, whether or not anybody still
	// waits for them.
	maxAsking = 4096
)

// Door is the platform's way into one space. It is safe for concurrent use.
type Door struct {
	space, account, owner string
	assignments           messages.Assignments
	// asking holds one for each question that is not answered.
	asking chan struct{}
}

// Open makes the door of a space. account is the public key of its DATA account, and
// secret the one that owners are derived under. Without assignments every request is
// refused with messages.PlatformAbsent.
func Open(space, account string, secret messages.Secret, assignments messages.Assignments) (*Door, error) {
	owner, err := identity.PlatformOwner(secret, space, account)
	if err != nil {
		return nil, err
	}
	return &Door{space: space, account: account, owner: owner, assignments: assignments, asking: make(chan struct{}, maxAsking)}, nil
}

// Owner is whose principals serve what the platform has assigned, whichever instance
// that is.
func (d *Door) Owner() string { return d.owner }

// Admit reads what is assigned, anew each time, and returns it if that is what is asked
// about; so a caller that takes long asks again before it gives anything away. Refused
// with messages.PlatformAbsent, with PlatformAway while the platform does not tell, and
// with NotAssigned.
func (d *Door) Admit(ctx context.Context, at messages.PlatformPlace) (messages.Assignment, error) {
	switch {
	case d.assignments == nil:
		return messages.Assignment{}, messages.PlatformAbsent
	case at.Space != d.space:
		return messages.Assignment{}, messages.NotAssigned.Because("the request is about another space")
	case at.Account != d.account:
		return messages.Assignment{}, messages.NotAssigned.Because("the request is about another account")
	}
	assigned, there, err := d.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return messages.Assignment{}, context.Cause(ctx)
	case err != nil:
		return messages.Assignment{}, messages.PlatformAway.From(err)
	case !there:
		return messages.Assignment{}, messages.NotAssigned
	case assigned.Account != d.account:
		return messages.Assignment{}, messages.NotAssigned.Because("the assignment is of another account")
	case assigned.Revision != at.Revision:
		return messages.Assignment{}, messages.NotAssigned.Because("the assignment has changed, it is at revision %d", assigned.Revision)
	case assigned.Endpoint != at.Endpoint || assigned.Instance != at.Instance:
		return messages.Assignment{}, messages.NotAssigned
	}
	return assigned, nil
}

// ask has the platform say what is assigned. One that does not return, or dies over it,
// does not tell: nobody here waits longer than ctx for it, nor longer than answerWithin.
func (d *Door) ask(ctx context.Context) (messages.Assignment, bool, error) {
	type told struct {
		assigned messages.Assignment
		there    bool
		err      error
	}
	select {
	case d.asking <- struct{}{}:
	default:
		return messages.Assignment{}, false, errors.New("too many questions are not answered")
	}
	limited, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answer := make(chan told, 1) // the one answer, for whoever still waits
	go func() {                  // ends with the platform's answer, which it owes when the context ends
		said := told{err: errors.New("it ended over its answer")}
		defer func() {
			if died := recover(); died != nil {
				said = told{err: fmt.Errorf("it panicked: %v", died)}
			}
			<-d.asking
			answer <- said
		}()
		assigned, there, err := d.assignments.Assignment(limited)
		said = told{assigned, there, err}
	}()
	select {
	case said := <-answer:
		return said.assigned, said.there, said.err
	case <-limited.Done():
		return messages.Assignment{}, false, context.Cause(limited)
	}
}

// Owns refuses, with messages.InstanceForeign, an instance that serves somebody else.
func (d *Door) Owns(gate messages.Instance) error {
	if gate.Principal.Owner != d.owner {
		return messages.InstanceForeign
	}
	return nil
}
