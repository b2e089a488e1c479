package reader

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// keptUnreadable bounds the memory; further rows are not remembered.
	keptUnreadable = 1000
	// shownUnreadable is how many rows a problem names; the list of grants has them all.
	shownUnreadable = 5
)

// Unreadable remembers the rows that could not be read when they were last asked
// for. It outlives the actor's lives, and is safe for concurrent use; the zero value
// has met none.
type Unreadable struct {
	mu   sync.Mutex
	rows map[string]bool
}

// Met takes note of the rows with these keys, and logs each that is new.
func (u *Unreadable) Met(log *slog.Logger, keys ...string) {
	for _, key := range keys {
		if u.add(key) {
			log.Error("a row cannot be read", "key", key)
		}
	}
}

func (u *Unreadable) add(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.rows[key] || len(u.rows) == keptUnreadable {
		return false
	}
	if u.rows == nil {
		u.rows = map[string]bool{}
	}
	u.rows[key] = true
	return true
}

// read forgets what a decision could read.
func (u *Unreadable) read(a messages.Authority) {
	if u.Count() == 0 {
		return
	}
	if a.HasHead {
		u.forget(ledger.HeadKey(a.Head.Principal))
	}
	if a.HasGrant {
		u.forget(ledger.GrantKey(a.Grant.Principal))
	}
	u.listed(a.Chain)
}

// listed forgets the rows of grants that could be read.
func (u *Unreadable) listed(grants []messages.Grant) {
	if u.Count() == 0 {
		return
	}
	for _, g := range grants {
		u.forget(ledger.GrantKey(g.Principal))
	}
}

func (u *Unreadable) forget(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.rows, key)
}

// Count is how many rows are remembered, at most 1,000.
func (u *Unreadable) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.rows)
}

// Problems tells an operator of them in one line; no line when there are none.
func (u *Unreadable) Problems() []string {
	u.mu.Lock()
	keys := slices.Sorted(maps.Keys(u.rows))
	u.mu.Unlock()
	if len(keys) == 0 {
		return []string{}
	}
	shown := make([]string, 0, shownUnreadable+1)
	for _, key := range keys[:min(len(keys), shownUnreadable)] {
		shown = append(shown, strings.Trim(strconv.Quote(key), `"`))
	}
	if more := len(keys) - shownUnreadable; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return []string{fmt.Sprintf("unreadable rows in the authority stream: %d, and whoever they are about is denied: %s",
		len(keys), strings.Join(shown, ", "))}
}
