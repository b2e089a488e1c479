package connect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/messages"
)

// variable is a name that stands in braces in a template.
type variable string

// The variables of a subject. Each stands for one token, or a part of one, that is
// never empty and holds neither a dot nor a wildcard.
const (
	varSpace variable = "space"
	varOwner variable = "owner"
	varActor variable = "actor"
	varUID   variable = "uid"
)

// Whole entries that stand for a list of the grant.
const (
	publishList   = "{publish}"
	subscribeList = "{subscribe}"
)

// template is one entry of a profile's list, read once.
type template struct {
	// list is the grant's list this entry stands for; then there are no parts.
	list  string
	parts []part
}

// part is a literal, or the variable that follows none.
type part struct {
	literal  string
	variable variable
}

// subjectOf is whom a template is filled in for.
type subjectOf struct {
	principal messages.Principal
	uid       string
	// endpoint is set for a process of an instance: the service's name with `_` for `.`.
	endpoint string
}

func (s subjectOf) value(v variable) string {
	switch v {
	case varOwner:
		return s.principal.Owner
	case varActor:
		return s.principal.Actor
	default:
		return s.uid
	}
}

// fill writes the subject for somebody.
func (t template) fill(s subjectOf) string {
	if len(t.parts) == 1 && t.parts[0].variable == "" {
		return t.parts[0].literal
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.variable == "" {
			b.WriteString(p.literal)
		} else {
			b.WriteString(s.value(p.variable))
		}
	}
	return b.String()
}

// parseTemplate reads one entry. Every subject it can yield is well formed, and
// its first token can be neither a wildcard nor one of the servers' own or
// somebody's inbox.
func parseTemplate(space, text string) (template, error) {
	if text == publishList || text == subscribeList {
		return template{list: text}, nil
	}
	parts, err := parseParts(space, text)
	if err != nil {
		return template{}, err
	}
	t := template{parts: parts}
	if first, _, _ := strings.Cut(text, "."); strings.Contains(first, "{"+string(varActor)+"}") {
		return template{}, errors.New("the first token may not hold {actor}, which the holder chose")
	}
	return t, checkYield(t.fill(anybody()))
}

// anybody stands for every principal: the grammars make the others alike.
func anybody() subjectOf {
	return subjectOf{principal: messages.Principal{Owner: "u_" + strings.Repeat("a", 26), Actor: "a"}, uid: strings.Repeat("a", 26)}
}

func checkYield(subject string) error {
	first, _, _ := strings.Cut(subject, ".")
	switch {
	case !grants.Covers(subject, subject):
		return errors.New("it is not a subject pattern")
	case first == "*" || first == ">":
		return errors.New("the first token may not be a wildcard")
	case strings.HasPrefix(first, "_INBOX"), first == "_R_", first == "$SYS":
		return errors.New("the first token is reserved; the own inbox is always there")
	}
	return nil
}

func parseParts(space, text string) ([]part, error) {
	var parts []part
	literal := func(s string) {
		if s == "" {
			return
		}
		if n := len(parts); n > 0 && parts[n-1].variable == "" {
			parts[n-1].literal += s
			return
		}
		parts = append(parts, part{literal: s})
	}
	for rest := text; rest != ""; {
		before, after, opens := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return nil, errors.New("a brace is closed that was not opened")
		}
		literal(before)
		if !opens {
			break
		}
		name, next, closes := strings.Cut(after, "}")
		if !closes {
			return nil, errors.New("a brace is not closed")
		}
		switch v := variable(name); v {
		case varSpace:
			literal(space)
		case varOwner, varActor, varUID:
			parts = append(parts, part{variable: v})
		default:
			return nil, fmt.Errorf("there is no variable %.40q here", name)
		}
		rest = next
	}
	return parts, nil
}
