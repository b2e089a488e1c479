package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/ledger/contract"
	"github.com/cotal-ai/authplane/messages"
)

// state is one principal as the model sees it.
type state struct {
	granted, live bool
	uid           string
	revision      uint64
	born, active  bool // whether there is a head, and whether it stands
	head, root    string
}

// op is one call on the principal.
type op struct {
	kind     string // put, edit, revoke, enrol, retire
	uid      string // that put gives and enrol asks for
	root     string // that enrol makes, if it makes one
	revision uint64 // that edit expects
}

func (o op) String() string {
	return fmt.Sprintf("%s(%.4s,%.4s,%d)", o.kind, o.uid, o.root, o.revision)
}

// refused stands for every refusal: which one depends on the order of reads that
// no caller can see.
const refused = "refused"

// step is what the ledger does, were it one thing at a time.
func (s state) step(o op) (state, string) {
	switch o.kind {
	case "put":
		if (s.granted && s.live) || (s.born && s.active) {
			return s, refused
		}
		s.granted, s.live, s.uid, s.revision = true, true, o.uid, 1
		return s, s.uid
	case "edit":
		if !s.live || s.revision != o.revision {
			return s, refused
		}
		s.revision++
		return s, s.uid
	case "revoke":
		if !s.granted {
			return s, refused
		}
		if s.live {
			s.live = false
			s.revision++
		}
		return s, s.uid
	case "retire":
		if !s.born || !s.active {
			return s, refused
		}
		if s.live {
			s.live = false
			s.revision++
		}
		s.active, s.root = false, ""
		return s, s.head
	case "enrol":
		if !s.live || s.uid != o.uid || (s.born && s.head == o.uid && !s.active) {
			return s, refused
		}
		if s.head != o.uid {
			s.born, s.active, s.head, s.root = true, true, o.uid, o.root
		}
		return s, s.root
	case "denied":
		if s.live && s.uid == o.uid && s.head == o.uid && s.active {
			return s, s.root
		}
		return s, refused
	}
	panic("no such operation: " + o.kind)
}

// explained reports whether some order of the operations, each told what it was
// told, ends in the state that was found. One told "unknown" may have happened or not.
func explained(from state, ops []op, told []string, end state) bool {
	if len(ops) == 0 {
		return from == end
	}
	for i := range ops {
		restOps := append(append([]op(nil), ops[:i]...), ops[i+1:]...)
		restTold := append(append([]string(nil), told[:i]...), told[i+1:]...)
		next, answer := from.step(ops[i])
		if (answer == told[i] || told[i] == "unknown") && explained(next, restOps, restTold, end) {
			return true
		}
		if told[i] == "unknown" && explained(from, restOps, restTold, end) {
			return true
		}
		// An exchange whose answer was lost looks again, and is refused if the
		// principal was ended since, although it had happened.
		if ops[i].kind == "enrol" && told[i] == refused && answer != refused {
			later := op{kind: "denied", uid: ops[i].uid}
			if explained(next, append(restOps, later), append(restTold, refused), end) {
				return true
			}
		}
	}
	return false
}

// steady pauses without chance, so that an experiment can be repeated.
var steady = ledger.Patience{First: 1, Most: 1, Budget: time.Minute}

// perform makes the call and says in the model's words what came of it.
func (o op) perform(ctx context.Context, b ledger.Backend) (string, error) {
	given := []string{o.root}
	if o.kind == "put" {
		given = []string{o.uid}
	}
	writer := ledger.NewWriter(ledger.NewStore(b, steady), ledger.Options{Instance: "i",
		Now: fixedClock, NewUID: thenRandom(given)})
	var answer string
	var err error
	switch p := principal("p"); o.kind {
	case "put":
		var made messages.GrantWritten
		made, err = writer.PutGrant(ctx, put("p", ""))
		answer = made.UID
	case "edit":
		var made messages.GrantWritten
		made, err = writer.EditGrant(ctx, messages.EditGrant{Principal: p, Revision: o.revision, By: "x"})
		answer = made.UID
	case "revoke":
		var made messages.GrantWritten
		made, err = writer.RevokeGrant(ctx, messages.RevokeGrant{Principal: p, By: "x"})
		answer = made.UID
	case "retire":
		head, _ := found(ctx, b)
		if !head.active {
			return refused, nil
		}
		var holder *contract.Holder
		if holder, err = contract.NewHolder(ctx, ledger.NewStore(b, steady), ledger.Options{Now: fixedClock}); err == nil {
			_, err = holder.Retire(ctx, head.head)
		}
		answer = head.head
	case "enrol":
		var made messages.Enrolled
		made, err = writer.Enrol(ctx, messages.Enrol{Principal: p, UID: o.uid})
		answer = made.CredentialID
	}
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, messages.OutcomeUnknown):
		return "unknown", nil
	case among(err, []error{messages.GrantStands, messages.IncarnationStanding, messages.GrantNotFound,
		messages.GrantMoved, messages.NotGranted, messages.IncarnationEnded}):
		return refused, nil
	}
	return "", err
}

// found is the ledger in the model's words.
func found(ctx context.Context, b ledger.Backend) (state, error) {
	a, err := ledger.NewReader(b, fixedClock).Authority(ctx, messages.ReadAuthority{Principal: principal("p"), Head: true})
	if err != nil {
		return state{}, err
	}
	return state{granted: a.HasGrant, live: a.HasGrant && a.Grant.State == messages.GrantLive, uid: a.Grant.UID,
		revision: a.Grant.Revision, born: a.HasHead, active: a.HasHead && a.Head.State == messages.HeadActive,
		head: a.Head.UID, root: a.Head.Root.ID}, nil
}
