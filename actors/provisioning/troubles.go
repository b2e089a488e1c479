package provisioning

import (
	"maps"
	"slices"
	"sync"
)

// maxTroubles bounds what is shown.
const maxTroubles = 100

// troubles are the footprints that could not be settled when that was tried last. The
// zero value is ready.
type troubles struct {
	mu sync.Mutex
	of map[string]string // by key
}

// note says what is wrong with a footprint now; empty is nothing. It reports whether
// that is news.
func (t *troubles) note(key, text string) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.of[key]
	switch {
	case text == "":
		delete(t.of, key)
	case before != "" || len(t.of) < maxTroubles:
		if t.of == nil {
			t.of = map[string]string{}
		}
		t.of[key] = text
	}
	return text != before
}

func (t *troubles) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Values(t.of))
}
