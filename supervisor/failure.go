package supervisor

import (
	"strings"
)

// A Phase says what was being done when something failed.
type Phase string

const (
	PhaseOpen   Phase = "open"
	PhaseRun    Phase = "run"
	PhaseDrain  Phase = "drain"
	PhaseClose  Phase = "close"
	PhaseUnwind Phase = "unwind"
)

// A Failure is a leaf of an error tree: what failed, where, and why.
type Failure struct {
	Path  string
	Label string // the connection label, when one is known
	Phase Phase
	Cause error
}

func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(string(f.Phase))
	b.WriteByte(' ')
	b.WriteString(f.Path)
	if f.Label != "" {
		b.WriteString(" (" + f.Label + ")")
	}
	b.WriteString(": ")
	b.WriteString(f.Cause.Error())
	return b.String()
}

func (f *Failure) Unwrap() error { return f.Cause }

// Failures is a node of an error tree: two or more things that failed together.
// errors.Is and errors.As reach every leaf.
type Failures struct {
	Doing string // what was being done, such as "close space"
	List  []error
}

// Error is one line for the whole and one for each member, indented by depth.
func (f *Failures) Error() string {
	var b strings.Builder
	b.WriteString(f.Doing)
	b.WriteByte(':')
	for _, err := range f.List {
		b.WriteString("\n  ")
		b.WriteString(strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return b.String()
}

func (f *Failures) Unwrap() []error { return f.List }

// gather makes one error of several: nil of none, the error itself of one.
func gather(doing string, errs []error) error {
	var list []error
	for _, err := range errs {
		if err != nil {
			list = append(list, err)
		}
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &Failures{Doing: doing, List: list}
}

// Leaves returns every Failure of an error tree, in order.
func Leaves(err error) []*Failure {
	var out []*Failure
	walk(err, func(f *Failure) { out = append(out, f) })
	return out
}

func walk(err error, visit func(*Failure)) {
	switch e := err.(type) {
	case nil:
	case *Failure:
		before := 0
		walk(e.Cause, func(f *Failure) { before++; visit(f) })
		if before == 0 {
			visit(e)
		}
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			walk(inner, visit)
		}
	}
}
