package settings

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/messages"
)

// problem is one thing that is wrong with a file.
type problem struct {
	// line is 0 where the trouble is that something is not there.
	line int
	// key is dotted, `idp.issuer`; empty for the file as a whole.
	key  string
	text string
}

func (p problem) String() string {
	text := p.text
	if p.key != "" {
		text = p.key + ": " + text
	}
	if p.line > 0 {
		text = fmt.Sprintf("line %d: %s", p.line, text)
	}
	return text
}

// refuse makes one error of all problems, in the order of their lines.
func refuse(path string, found []problem) error {
	if len(found) == 0 {
		return nil
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].line < found[j].line })
	lines := make([]string, len(found))
	for i, p := range found {
		lines[i] = "\n  " + p.String()
	}
	return messages.Malformed.Because("%s%s", path, strings.Join(lines, ""))
}

// meaningProblems are those that space.Config.Validate has found.
func meaningProblems(config space.Config) []problem {
	var wrong space.Problems
	if !errors.As(config.Validate(), &wrong) {
		return nil
	}
	found := make([]problem, len(wrong))
	for i, p := range wrong {
		found[i] = problem{key: p.Key, text: p.Text}
		if p.Key == "secrets_dir" && config.SecretsDir == "" {
			found[i].text += ", and $CREDENTIALS_DIRECTORY is not set"
		}
	}
	return found
}
