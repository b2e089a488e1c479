package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/cotal-ai/authplane/messages"
)

// branch is one actor and what is below it, in the order they were told.
type branch struct {
	name  string
	actor *messages.Actor // nil for a path that only leads to others
	below []*branch
}

// drawTree pictures the actors of a space as a tree, with what is worth knowing of
// each. The space itself is the actor that bears its name; paths of the others
// start below it.
func drawTree(w io.Writer, space string, actors []messages.Actor) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "ACTOR\tSTATE\tLIFE\tRESTARTS\tCONNECTION\tLAST ERROR")
	draw(columns, plant(space, actors), "", "")
	return columns.Flush()
}

// plant sorts actors into a tree by the segments of their paths.
func plant(space string, actors []messages.Actor) *branch {
	root := &branch{name: space}
	for i := range actors {
		if actors[i].Path == space {
			root.actor = &actors[i]
			continue
		}
		at := root
		for segment := range strings.SplitSeq(actors[i].Path, "/") {
			at = at.child(segment)
		}
		at.actor = &actors[i]
	}
	return root
}

func (b *branch) child(name string) *branch {
	for _, c := range b.below {
		if c.name == name {
			return c
		}
	}
	c := &branch{name: name}
	b.below = append(b.below, c)
	return c
}

// draw writes a branch behind its own stem, and what is below behind another.
func draw(w io.Writer, b *branch, stem, below string) {
	line := stem + b.name + "\t\t\t\t\t"
	if b.actor != nil {
		line = fmt.Sprintf("%s%s\t%s\t%d\t%d\t%s\t%s", stem, b.name,
			b.actor.State, b.actor.Generation, b.actor.Restarts, b.actor.Label, firstLine(b.actor.LastError))
	}
	_, _ = fmt.Fprintln(w, strings.TrimRight(line, "\t"))
	for i, c := range b.below {
		if i == len(b.below)-1 {
			draw(w, c, below+"└── ", below+"    ")
		} else {
			draw(w, c, below+"├── ", below+"│   ")
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
