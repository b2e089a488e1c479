package ledger

import (
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

const familyProvision = "prov"

const (
	// MaxDrivers bounds those who may be at one footprint together.
	MaxDrivers = 64
	// maxAckWait bounds what a duration can be made of again, in ms.
	maxAckWait = int64(365 * 24 * time.Hour / time.Millisecond)
)

// ProvisionKey is where the footprint of an incarnation stands. The name is found by
// the principal, by the incarnation and by the secret.
func ProvisionKey(p messages.Principal, uid, tokenHash string) string {
	return familyProvision + "." + p.String() + "." + uid + "." + tokenHash
}

// AllProvisions lists every footprint.
const AllProvisions = familyProvision + ".*.*.*.*"

// ProvisionsOf lists the footprints of a principal's incarnations.
func ProvisionsOf(p messages.Principal) string { return ProvisionKey(p, "*", "*") }

// ProvisionsOfUID lists those of one incarnation, whatever its secret was.
func ProvisionsOfUID(uid string) string { return familyProvision + ".*.*." + uid + ".*" }

// ProvisionsOfSecret lists those that were enrolled with a secret.
func ProvisionsOfSecret(tokenHash string) string { return familyProvision + ".*.*.*." + tokenHash }

// provisionFields is the wire form of `prov.<owner>.<actor>.<uid>.<tokenHash>`. The
// footprint stands in it written out: what was begun is finished or undone as it was
// begun, whatever is configured by then. W is drawn anew for each write.
type provisionFields struct {
	V         int                 `json:"v"`
	Owner     string              `json:"owner"`
	Actor     string              `json:"actor"`
	UID       string              `json:"uid"`
	TokenHash string              `json:"tokenHash"`
	Step      string              `json:"step"`
	Kept      bool                `json:"kept,omitempty"`
	Consumers []provisionConsumer `json:"consumers"`
	Rows      []provisionRow      `json:"rows"`
	Drivers   []provisionDriver   `json:"drivers"`
	At        int64               `json:"at"` // ms since 1970
	W         string              `json:"w"`
}

type provisionConsumer struct {
	Stream        string   `json:"stream"`
	Name          string   `json:"name"`
	Filters       []string `json:"filters"`
	Ack           string   `json:"ack"`
	AckWait       int64    `json:"ackWait,omitempty"` // ms
	MaxDeliver    int      `json:"maxDeliver,omitempty"`
	MaxAckPending int      `json:"maxAckPending,omitempty"`
	Deliver       string   `json:"deliver"`
	Owned         string   `json:"owned"`
}

type provisionRow struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	Value  string `json:"value"`
	Owned  string `json:"owned"`
}

type provisionDriver struct {
	ID    string `json:"id"`
	Until int64  `json:"until"` // ms since 1970
}

// EncodeProvision writes a footprint with the witness of this write. It refuses one
// that DecodeProvision would not take.
func EncodeProvision(p messages.Provision, witness string) ([]byte, error) {
	f := provisionFields{V: rowVersion, Owner: p.Principal.Owner, Actor: p.Principal.Actor, UID: p.UID, TokenHash: p.TokenHash,
		Step: string(p.Step), Kept: p.Kept, Consumers: []provisionConsumer{}, Rows: []provisionRow{}, Drivers: []provisionDriver{}, At: millis(p.At), W: witness}
	if len(p.Consumers) != len(p.Footprint.Consumers) || len(p.Rows) != len(p.Footprint.Rows) {
		return nil, messages.InternalFault.Because("footprint of %s: a part is nobody's", p.Principal)
	}
	for i, c := range p.Footprint.Consumers {
		f.Consumers = append(f.Consumers, provisionConsumer{Stream: c.Stream, Name: c.Name, Filters: listed(c.Filters), Ack: c.Ack, AckWait: c.AckWait.Milliseconds(),
			MaxDeliver: c.MaxDeliver, MaxAckPending: c.MaxAckPending, Deliver: c.Deliver, Owned: string(p.Consumers[i])})
	}
	for i, r := range p.Footprint.Rows {
		f.Rows = append(f.Rows, provisionRow{Bucket: r.Bucket, Key: r.Key, Value: r.Value, Owned: string(p.Rows[i])})
	}
	for _, d := range p.Drivers {
		f.Drivers = append(f.Drivers, provisionDriver{ID: d.ID, Until: millis(d.Until)})
	}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("footprint of %s: %s", p.Principal, why)
	}
	value, err := encode(f)
	if err == nil && len(value) > maxRow {
		return nil, messages.Malformed.Because("a footprint is at most %d bytes", maxRow)
	}
	return value, err
}

// DecodeProvision reads a footprint, or says messages.RowCorrupt.
func DecodeProvision(row Row) (messages.Provision, error) {
	var f provisionFields
	if err := decode(row, &f); err != nil {
		return messages.Provision{}, err
	}
	if why := f.fault(); why != "" {
		return messages.Provision{}, corrupt(row.Key, why)
	}
	p := messages.Provision{Principal: messages.Principal{Owner: f.Owner, Actor: f.Actor}, UID: f.UID, TokenHash: f.TokenHash,
		Step: messages.ProvisionStep(f.Step), Kept: f.Kept, At: instant(f.At)}
	if ProvisionKey(p.Principal, p.UID, p.TokenHash) != row.Key {
		return messages.Provision{}, corrupt(row.Key, "names another key")
	}
	for _, c := range f.Consumers {
		p.Footprint.Consumers = append(p.Footprint.Consumers, messages.FootprintConsumer{Stream: c.Stream, Name: c.Name, Filters: c.Filters, Ack: c.Ack,
			AckWait: time.Duration(c.AckWait) * time.Millisecond, MaxDeliver: c.MaxDeliver, MaxAckPending: c.MaxAckPending, Deliver: c.Deliver})
		p.Consumers = append(p.Consumers, messages.Ownership(c.Owned))
	}
	for _, r := range f.Rows {
		p.Footprint.Rows = append(p.Footprint.Rows, messages.FootprintRow{Bucket: r.Bucket, Key: r.Key, Value: r.Value})
		p.Rows = append(p.Rows, messages.Ownership(r.Owned))
	}
	for _, d := range f.Drivers {
		p.Drivers = append(p.Drivers, messages.ProvisionDriver{ID: d.ID, Until: instant(d.Until)})
	}
	return p, nil
}

// fault says which rule the fields break; empty is none. Whether the parts can be made
// is for whoever makes them.
func (f provisionFields) fault() string {
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case names.CheckPrincipal(messages.Principal{Owner: f.Owner, Actor: f.Actor}) != nil:
		return "names no principal"
	case names.CheckUID(f.UID) != nil, names.CheckUID(f.W) != nil:
		return "names no incarnation or witness"
	case !isHash(f.TokenHash):
		return "names no secret"
	case !isInstant(f.At):
		return "a number is out of range"
	case f.Consumers == nil, f.Rows == nil, f.Drivers == nil:
		return "a list is missing"
	case len(f.Drivers) > MaxDrivers:
		return "too many are at it"
	case slices.ContainsFunc(f.Drivers, func(d provisionDriver) bool { return names.CheckUID(d.ID) != nil || !isInstant(d.Until) }):
		return "names nobody who is at it"
	}
	return f.partsFault()
}

func (f provisionFields) partsFault() string {
	switch messages.ProvisionStep(f.Step) {
	case messages.ProvisionPlanned, messages.ProvisionGranted, messages.ProvisionProvisioned, messages.ProvisionReady,
		messages.ProvisionCompensating, messages.ProvisionDone:
	default:
		return "unknown step"
	}
	for _, c := range f.Consumers {
		if c.Stream == "" || c.Name == "" || c.Filters == nil || c.AckWait < 0 || c.AckWait > maxAckWait || c.MaxDeliver < 0 || c.MaxAckPending < 0 || !isOwnership(c.Owned) {
			return "a consumer is none"
		}
	}
	for _, r := range f.Rows {
		if r.Bucket == "" || r.Key == "" || !isOwnership(r.Owned) {
			return "a row is none"
		}
	}
	return ""
}

func isOwnership(s string) bool {
	switch messages.Ownership(s) {
	case messages.OwnershipOpen, messages.OwnershipOurs, messages.OwnershipMade, messages.OwnershipFound:
		return true
	}
	return false
}
