package ledger

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const (
	familyController = "ctl"

	// AllControllers lists what is remembered of every instance that a controller runs.
	AllControllers = familyController + ".*.*"

	// MaxRequests is how many requests of one controller are remembered at once.
	MaxRequests = 256
	// MaxCommands is how many commands a controller answers.
	MaxCommands = 64
	// maxIssuedAtOnce is the most credentials that one request is given.
	maxIssuedAtOnce = 8
	requestIDMin    = 22
	requestIDMax    = 64
	digestBytes     = 32
)

// ControllerKey is where it stands what an instance's controller asked for.
func ControllerKey(endpoint, instance string) string {
	return familyController + "." + endpoint + "." + instance
}

// Controller is what is remembered of the controller of an instance: which program is
// the process of an epoch, and what it asked for of late. One row holds it all, so that
// it stays as small as it is, however often a controller asks.
type Controller struct {
	Endpoint, Instance string
	// Epoch is the process that prepared last.
	Epoch uint64
	Keys  messages.ControllerKeys
	// Commands are sorted; none before the process activated.
	Commands []string
	// Requests are in the order in which they came.
	Requests []ControllerRequest
}

// ControllerRequest is one request, and what it takes to give its answer again.
type ControllerRequest struct {
	ID   string
	Door messages.ControllerDoor
	// Digest is the hex SHA-256 of everything that was asked, and of who asked.
	Digest string
	// Issued is in whole seconds. At Forget the request may be forgotten.
	Issued, Forget time.Time
	Credentials    []ControllerCredential
}

// ControllerCredential is one credential that a request was given.
type ControllerCredential struct {
	// ID names its row among those of the instance.
	ID   string
	Kind messages.ControllerKind
	User string
	// Expires is in whole seconds.
	Expires time.Time
}

// controllerFields is the wire form of `ctl.<endpoint>.<instance>`; W is drawn anew for
// each write.
type controllerFields struct {
	V            int             `json:"v"`
	Endpoint     string          `json:"endpoint"`
	Instance     string          `json:"instance"`
	ProcessEpoch uint64          `json:"processEpoch"`
	Keys         keyFields       `json:"keys"`
	Commands     []string        `json:"commands"`
	Requests     []requestFields `json:"requests"`
	W            string          `json:"w"`
}

type keyFields struct {
	Supervisor string `json:"supervisor"`
	Executor   string `json:"executor"`
	Server     string `json:"server"`
	Recorder   string `json:"recorder"`
	Ledger     string `json:"ledger"`
}

// requestFields has its times in seconds since 1970.
type requestFields struct {
	ID     string        `json:"id"`
	Door   string        `json:"door"`
	Digest string        `json:"digest"`
	Iat    int64         `json:"iat"`
	Until  int64         `json:"until"`
	Issued []issuedField `json:"issued"`
}

type issuedField struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	User string `json:"user"`
	Exp  int64  `json:"exp"`
}

// EncodeController writes what is remembered of a controller. It refuses what
// DecodeController would not take, and with messages.ControllerRequests what is more than
// a row may hold.
func EncodeController(c Controller, witness string) ([]byte, error) {
	f := controllerFields{V: rowVersion, Endpoint: c.Endpoint, Instance: c.Instance, ProcessEpoch: c.Epoch, Keys: keyFields(c.Keys),
		Commands: append([]string{}, c.Commands...), Requests: []requestFields{}, W: witness}
	for _, r := range c.Requests {
		one := requestFields{ID: r.ID, Door: string(r.Door), Digest: r.Digest, Iat: r.Issued.Unix(), Until: r.Forget.Unix(), Issued: []issuedField{}}
		for _, i := range r.Credentials {
			one.Issued = append(one.Issued, issuedField{ID: i.ID, Kind: string(i.Kind), User: i.User, Exp: i.Expires.Unix()})
		}
		f.Requests = append(f.Requests, one)
	}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("controller %s of %s: %s", c.Instance, c.Endpoint, why)
	}
	value, err := encode(f)
	if err == nil && len(value) > maxRow {
		return nil, messages.ControllerRequests
	}
	return value, err
}

// DecodeController reads what is remembered of a controller, or says
// messages.RowCorrupt.
func DecodeController(row Row) (Controller, error) {
	var f controllerFields
	if err := decode(row, &f); err != nil {
		return Controller{}, err
	}
	if why := f.fault(); why != "" {
		return Controller{}, corrupt(row.Key, why)
	}
	if ControllerKey(f.Endpoint, f.Instance) != row.Key {
		return Controller{}, corrupt(row.Key, "names another key")
	}
	c := Controller{Endpoint: f.Endpoint, Instance: f.Instance, Epoch: f.ProcessEpoch, Keys: messages.ControllerKeys(f.Keys), Commands: f.Commands}
	for _, r := range f.Requests {
		one := ControllerRequest{ID: r.ID, Door: messages.ControllerDoor(r.Door), Digest: r.Digest, Issued: seconds(r.Iat), Forget: seconds(r.Until)}
		for _, i := range r.Issued {
			one.Credentials = append(one.Credentials, ControllerCredential{ID: i.ID, Kind: messages.ControllerKind(i.Kind), User: i.User, Expires: seconds(i.Exp)})
		}
		c.Requests = append(c.Requests, one)
	}
	return c, nil
}

func seconds(s int64) time.Time { return time.Unix(s, 0).UTC() }

func (f controllerFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.Endpoint), names.CheckUID(f.Instance) != nil:
		return "names no instance"
	case f.ProcessEpoch > largestNumber:
		return "a number is out of range"
	case !f.Keys.differ():
		return "the keys are not five users'"
	case f.Commands == nil || len(f.Commands) > MaxCommands || !isSet(f.Commands) || slices.ContainsFunc(f.Commands, notToken):
		return "the commands are not a set of tokens"
	case f.Requests == nil || len(f.Requests) > MaxRequests:
		return "it remembers too many requests, or no list of them"
	case names.CheckUID(f.W) != nil:
		return "names no witness"
	}
	met := map[string]bool{}
	for _, r := range f.Requests {
		if met[r.ID] {
			return "names a request twice"
		}
		met[r.ID] = true
		if why := r.fault(); why != "" {
			return why
		}
	}
	return ""
}

func notToken(s string) bool { return !isToken(s) }

func (k keyFields) differ() bool {
	met := map[string]bool{}
	for _, user := range []string{k.Supervisor, k.Executor, k.Server, k.Recorder, k.Ledger} {
		if met[user] || !nkeys.IsValidPublicUserKey(user) {
			return false
		}
		met[user] = true
	}
	return true
}

func (r requestFields) fault() string {
	digest, err := hex.DecodeString(r.Digest)
	switch {
	case !IsRequestID(r.ID):
		return "names no request"
	case !isToken(r.Door):
		return "names no door"
	case err != nil || len(digest) != digestBytes || hex.EncodeToString(digest) != r.Digest:
		return "names no digest"
	case !isInstant(r.Iat), r.Until <= r.Iat || !isInstant(r.Until):
		return "a time is out of range"
	case len(r.Issued) == 0 || len(r.Issued) > maxIssuedAtOnce:
		return "a request was given nothing, or too much"
	}
	for _, i := range r.Issued {
		if !isToken(i.ID) || !isToken(i.Kind) || !nkeys.IsValidPublicUserKey(i.User) || i.Exp <= r.Iat || !isInstant(i.Exp) {
			return "what was issued is garbled"
		}
	}
	return ""
}

// IsRequestID reports whether s can name a request: 22 to 64 characters of
// [A-Za-z0-9_-].
func IsRequestID(s string) bool {
	return len(s) >= requestIDMin && len(s) <= requestIDMax && isToken(s)
}
