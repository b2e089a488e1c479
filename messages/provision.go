package messages

import "time"

// Footprint lists what a machine needs in the account of the principals besides its
// permissions: durable consumers and rows. With it every machine may look at, pull from
// and acknowledge to its own consumers, and read its own rows directly. Whoever pulls
// names the subject that messages are delivered to, which no permission bounds. In names, filters and values of a
// configured one {owner}, {actor}, {uid} and {space} stand for those of the machine;
// in one that is written out nothing does.
type Footprint struct {
	Consumers []FootprintConsumer
	Rows      []FootprintRow
}

// Empty reports whether there is nothing to make.
func (f Footprint) Empty() bool { return len(f.Consumers)+len(f.Rows) == 0 }

// FootprintConsumer is a durable consumer that is pulled from.
type FootprintConsumer struct {
	// Stream is there already; it is never made.
	Stream string
	// Name is the durable's, up to 200 characters of [A-Za-z0-9_-]. It holds {uid}, so
	// that no other incarnation has one of this name.
	Name string
	// Filters are the subjects it delivers; none is all of the stream's.
	Filters []string
	// Ack is explicit (default), all or none.
	Ack string
	// AckWait is how long a message may be worked on before it is delivered again, in
	// whole milliseconds; 0 is the server's default.
	AckWait time.Duration
	// MaxDeliver is how often a message is delivered at most; 0 is without end.
	MaxDeliver int
	// MaxAckPending is how many messages may be worked on at once; 0 is the server's
	// default.
	MaxAckPending int
	// Deliver says where it begins: all (default), new or last.
	Deliver string
}

// FootprintRow is a row of a KV bucket.
type FootprintRow struct {
	// Bucket is there already, and lets its rows be read directly, as buckets do unless
	// told otherwise; it is never made.
	Bucket string
	// Key holds {uid}, so that it is no other incarnation's.
	Key   string
	Value string
}

// ProvisionStep says how far the provisioning of an incarnation is.
type ProvisionStep string

const (
	// ProvisionPlanned is before anything was granted. Nothing is there to be undone.
	ProvisionPlanned ProvisionStep = "planned"
	// ProvisionGranted is granted; its footprint may be there in part.
	ProvisionGranted ProvisionStep = "granted"
	// ProvisionProvisioned has its whole footprint.
	ProvisionProvisioned ProvisionStep = "provisioned"
	// ProvisionReady has been told to whoever asked.
	ProvisionReady ProvisionStep = "ready"
	// ProvisionCompensating is being undone: it failed, or its incarnation has ended.
	ProvisionCompensating ProvisionStep = "compensating"
	// ProvisionDone is over; nothing that was made for it is left.
	ProvisionDone ProvisionStep = "done"
)

// Ownership says whose a part of a footprint is.
type Ownership string

const (
	// OwnershipOpen is a part that nobody has looked for.
	OwnershipOpen Ownership = "open"
	// OwnershipOurs is a part that was not there. That is recorded before it is made, so
	// it may not be there yet; what bears our mark by then is undone.
	OwnershipOurs Ownership = "ours"
	// OwnershipMade is a part that we have made. It is undone, whoever wrote over it since.
	OwnershipMade Ownership = "made"
	// OwnershipFound is a part that was there, as it has to be. It is never undone.
	OwnershipFound Ownership = "found"
)

// ProvisionDriver is somebody who may be making parts of a footprint.
type ProvisionDriver struct {
	ID string
	// Until is when its connection has run out at the latest, in whole milliseconds. Until
	// then nobody else can say that a part which was removed stays so.
	Until time.Time
}

// Provision is the journal of one incarnation's footprint.
type Provision struct {
	Principal Principal
	UID       string
	// TokenHash is the hex SHA-256 of the machine's secret when it was enrolled.
	TokenHash string
	Step      ProvisionStep
	// Kept says that a failure takes the grant back no more: whoever asked may have been
	// answered before, or it was granted without this.
	Kept bool
	// Footprint is written out; Consumers and Rows say whose its parts are, in the same
	// order.
	Footprint       Footprint
	Consumers, Rows []Ownership
	// Drivers are those of whom it is not known that they have ended.
	Drivers []ProvisionDriver
	// At is when the journal was written last, in whole milliseconds.
	At time.Time
}

// EnrolMachine asks for the grant of a machine that made its secret itself, and for
// its footprint. Asking again with the same TokenHash is the same question.
//
// Refused with Malformed, ExchangeAbsent where no public exchange could be told of,
// GrantStands while another secret is granted, or this one other rights,
// IncarnationStanding while a former incarnation has not ended, ParentMissing or
// ScopeExceeded when it would not lie inside the whole chain of its parents now, and
// FootprintRefused when what it needs cannot be made: then nothing of it is left, unless
// it was granted before. EnrolmentPending and whatever else is retryable leave it to be
// finished, by the same question or by itself.
type EnrolMachine struct {
	Principal Principal
	// TokenHash is 64 characters of lower-case hex; the secret itself never travels.
	TokenHash string
	Allowance Allowance
	Parent    Principal
	Label     string
	By        string
}

// MachineEnrolled answers EnrolMachine once everything is there.
type MachineEnrolled struct {
	Grant Grant
	Step  ProvisionStep
	// Again says that it was granted before.
	Again bool
	// ExchangeURL is where the machine turns its secret into bearers.
	ExchangeURL string
}
