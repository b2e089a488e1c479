package settings

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cotal-ai/authplane/actors/space"
)

// list turns the entries of `spaces` into what each space takes. Keys of a problem
// begin with their entry, `spaces[1].nats_url`.
func (f file) list(dir string, over Overrides) ([]space.Config, []problem) {
	var found []problem
	if len(f.Spaces) == 0 {
		found = append(found, problem{key: "spaces", text: "names no space"})
	}
	configs := make([]space.Config, len(f.Spaces))
	for i, entry := range f.Spaces {
		its := Overrides{}
		if over.StateDir != "" {
			its.StateDir = filepath.Join(over.StateDir, entry.Space)
		}
		config, more := entry.config(dir, its)
		for _, p := range more {
			if p.key == "secrets_dir" && config.SecretsDir == "" {
				p.text = "is missing; $CREDENTIALS_DIRECTORY stands in for it only where there is no list"
			}
			p.key = entryKey(i, p.key)
			found = append(found, p)
		}
		configs[i] = config
	}
	return configs, append(found, shared(configs)...)
}

func entryKey(i int, key string) string { return fmt.Sprintf("spaces[%d].%s", i, key) }

// strays are the keys of one space that stand beside the list.
func strays(lines map[string]int) []problem {
	var found []problem
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		if key != "spaces" && key != "log" && !strings.ContainsAny(key, ".[") {
			found = append(found, problem{key: key, text: "stands beside spaces; it belongs into an entry of that list"})
		}
	}
	return found
}

// shared lists what a space has in common with one before it, and cannot: a name, a
// directory of state or of secrets, an address.
func shared(configs []space.Config) []problem {
	var found []problem
	for i, config := range configs {
		blamed := map[string]bool{}
		for j, earlier := range configs[:i] {
			note := func(key string, common bool) {
				if common && !blamed[key] {
					blamed[key] = true
					found = append(found, problem{key: entryKey(i, key), text: fmt.Sprintf("is that of spaces[%d]; each needs its own", j)})
				}
			}
			note("space", config.Space != "" && config.Space == earlier.Space)
			note("state_dir", samePlace(config.StateDir, earlier.StateDir))
			note("secrets_dir", samePlace(config.SecretsDir, earlier.SecretsDir))
			note("listen", clashes(config.Listen, earlier))
			note("public.listen", config.Public != nil && clashes(config.Public.Listen, earlier))
		}
	}
	return found
}

func samePlace(one, other string) bool {
	return one != "" && other != "" && resolved(one) == resolved(other)
}

// resolved follows the links of a path, as far as it is there.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return filepath.Clean(path)
}

// clashes reports whether an address cannot be bound beside those of a space.
func clashes(address string, beside space.Config) bool {
	return clash(address, beside.Listen) || beside.Public != nil && clash(address, beside.Public.Listen)
}

func clash(one, other string) bool {
	host, port, err := net.SplitHostPort(one)
	otherHost, otherPort, otherErr := net.SplitHostPort(other)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return false
	}
	return host == otherHost || covers(host, otherHost) || covers(otherHost, host)
}

// covers reports whether a host stands for every address that the other one can be.
func covers(host, other string) bool {
	switch host {
	case "", "::":
		return true
	case "0.0.0.0":
		ip, err := netip.ParseAddr(other)
		return err == nil && ip.Is4()
	}
	return false
}
