package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Report is what one benchmark found, as a reader wants to see it.
type Report struct {
	// Title says what was measured.
	Title string
	// How says how, in a sentence or two.
	How string

	ratios, figures, notes []string
}

// Bound is what a figure is promised to keep to. The zero Bound promises nothing.
type Bound struct {
	AtLeast, AtMost float64
}

// verdict says whether v keeps to the bound.
func (b Bound) verdict(v float64) string {
	var promise string
	kept := true
	switch {
	case b.AtLeast > 0:
		promise, kept = fmt.Sprintf("at least %s", number(b.AtLeast)), v >= b.AtLeast
	case b.AtMost > 0:
		promise, kept = fmt.Sprintf("at most %s", number(b.AtMost)), v <= b.AtMost
	default:
		return ""
	}
	if kept {
		return "  " + promise + ": holds"
	}
	return "  " + promise + ": DOES NOT HOLD"
}

// Ratio adds a figure without a unit, which says the same on any machine.
func (r *Report) Ratio(name string, s Series, b Bound) {
	r.ratios = append(r.ratios, line(name, s, "", b.verdict(s.Median())))
}

// Figure adds a figure of this machine.
func (r *Report) Figure(name string, s Series, unit string, b Bound) {
	r.figures = append(r.figures, line(name, s, unit, b.verdict(s.Median())))
}

// Note adds a line as it is.
func (r *Report) Note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// line is `name    12.3 unit  (11.9 – 13.0, 5 turns)  at least 10: holds`.
func line(name string, s Series, unit, verdict string) string {
	value := number(s.Median())
	if unit != "" {
		value += " " + unit
	}
	const column = 46
	text := name + strings.Repeat(" ", max(1, column-utf8.RuneCountInString(name))) + value
	if len(s) > 1 {
		text += fmt.Sprintf("  (%s – %s, %d turns)", number(s.Min()), number(s.Max()), len(s))
	}
	return text + verdict
}

// number prints three digits that matter, and whole numbers whole.
func number(v float64) string {
	switch {
	case v == float64(int64(v)) || v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// String is the block.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n── %s\n", r.Title)
	if r.How != "" {
		fmt.Fprintf(&b, "   %s\n", r.How)
	}
	for _, l := range r.ratios {
		fmt.Fprintf(&b, "   %s\n", l)
	}
	if len(r.figures) > 0 {
		b.WriteString("   on this machine:\n")
	}
	for _, l := range r.figures {
		fmt.Fprintf(&b, "     %s\n", l)
	}
	for _, l := range r.notes {
		fmt.Fprintf(&b, "   %s\n", l)
	}
	return b.String()
}
