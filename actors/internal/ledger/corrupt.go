package ledger

import "github.com/cotal-ai/authplane/messages"

// corruptRow is messages.RowCorrupt of one row, whose key CorruptKeys finds again.
type corruptRow struct {
	key string
	error
}

func (c *corruptRow) Unwrap() error { return c.error }

// Corrupt is how a backend says messages.RowCorrupt of the row at key.
func Corrupt(key, why string) error { return corrupt(key, why) }

// corrupt names the row and the rule it breaks, never its content.
func corrupt(key, why string) error {
	return &corruptRow{key: key, error: messages.RowCorrupt.Because("%s: %s", key, why)}
}

// CorruptKeys lists the rows that err says are corrupt, in the order in which it
// names them.
func CorruptKeys(err error) []string {
	switch e := err.(type) {
	case *corruptRow:
		return []string{e.key}
	case interface{ Unwrap() error }:
		return CorruptKeys(e.Unwrap())
	case interface{ Unwrap() []error }:
		var keys []string
		for _, inner := range e.Unwrap() {
			keys = append(keys, CorruptKeys(inner)...)
		}
		return keys
	}
	return nil
}
