package trust

import (
	"errors"
	"fmt"
)

// ErrNoSecret is a name that a store does not hold.
var ErrNoSecret = errors.New("no such secret")

func noSecret(name string) error { return fmt.Errorf("%s: %w", name, ErrNoSecret) }
