package main

import (
	"io"
	"strings"

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
	var rows [][]string
	draw(&rows, plant(space, actors), "", "")
	return table(w, "actor\tstate\tlife\trestarts\tconnection\tlast error", rows)
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

// draw lists a branch behind its own stem, and what is below behind another. Every
// row has every cell, or the columns would fall apart.
func draw(rows *[][]string, b *branch, stem, below string) {
	row := []string{stem + b.name, "", "", "", "", ""}
	if b.actor != nil {
		copy(row[1:], []string{b.actor.State, number(b.actor.Generation), number(b.actor.Restarts),
			b.actor.Label, firstLine(b.actor.LastError)})
	}
	*rows = append(*rows, row)
	for i, c := range b.below {
		if i == len(b.below)-1 {
			draw(rows, c, below+"└── ", below+"    ")
		} else {
			draw(rows, c, below+"├── ", below+"│   ")
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
