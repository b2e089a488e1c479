package ledger

import (
	"strings"
	"time"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// KindRegistration is the operation that may hold an instance's gate.
const KindRegistration = "registration"

// instanceFields is the wire form of `inst.<endpoint>.<instance>`. Both names stand
// in the row too, so that it rebuilds its key; W is drawn anew for each write.
type instanceFields struct {
	V                    int             `json:"v"`
	Endpoint             string          `json:"endpoint"`
	Instance             string          `json:"instance"`
	State                string          `json:"state"`
	Generation           uint64          `json:"generation"`
	ProcessEpoch         uint64          `json:"processEpoch"`
	RegistrationRevision uint64          `json:"registrationRevision"`
	Principal            string          `json:"principal"`
	Op                   *operationField `json:"op,omitempty"`
	W                    string          `json:"w"`
}

// EncodeInstance writes an instance's gate. It refuses one that DecodeInstance
// would not take.
func EncodeInstance(i messages.Instance, witness string) ([]byte, error) {
	f := instanceFields{V: rowVersion, Endpoint: i.Endpoint, Instance: i.Name, State: string(i.State), Generation: i.Generation,
		ProcessEpoch: i.Epoch, RegistrationRevision: i.RegistrationRevision, Principal: i.Principal.String(), W: witness}
	if i.Operation != (messages.OperationRef{}) {
		f.Op = &operationField{ID: i.Operation.ID, Kind: i.Operation.Kind}
	}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("instance %s of %s: %s", i.Name, i.Endpoint, why)
	}
	return encode(f)
}

// DecodeInstance reads an instance's gate, or says messages.RowCorrupt.
func DecodeInstance(row Row) (messages.Instance, error) {
	var f instanceFields
	if err := decode(row, &f); err != nil {
		return messages.Instance{}, err
	}
	if why := f.fault(); why != "" {
		return messages.Instance{}, corrupt(row.Key, why)
	}
	if InstanceKey(f.Endpoint, f.Instance) != row.Key {
		return messages.Instance{}, corrupt(row.Key, "names another key")
	}
	principal, _ := parseHolder(f.Principal) // fault has checked it
	i := messages.Instance{Endpoint: f.Endpoint, Name: f.Instance, State: messages.InstanceState(f.State), Generation: f.Generation,
		Epoch: f.ProcessEpoch, RegistrationRevision: f.RegistrationRevision, Principal: principal}
	if f.Op != nil {
		i.Operation = messages.OperationRef{ID: f.Op.ID, Kind: f.Op.Kind}
	}
	return i, nil
}

func (f instanceFields) fault() string {
	_, err := parseHolder(f.Principal)
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.Endpoint), names.CheckUID(f.Instance) != nil:
		return "names no instance"
	case !isCount(f.Generation), f.ProcessEpoch > largestNumber, f.RegistrationRevision > largestNumber:
		return "a counter is out of range"
	case err != nil:
		return "the principal is none"
	case names.CheckUID(f.W) != nil:
		return "names no witness"
	}
	return f.stateFault()
}

// stateFault checks that exactly a frozen gate names its operation.
func (f instanceFields) stateFault() string {
	switch messages.InstanceState(f.State) {
	case messages.InstanceOpen:
		if f.Op != nil {
			return "an open gate names an operation"
		}
	case messages.InstanceFrozen:
		if f.Op == nil || f.Op.Kind != KindRegistration || names.CheckUID(f.Op.ID) != nil {
			return "the operation cannot hold this gate"
		}
	default:
		return "unknown state"
	}
	return ""
}

// InstanceCredential is a credential of one process of a service's instance.
type InstanceCredential struct {
	ID string
	// Holder is whose connections the credential stands for.
	Holder             messages.Principal
	Endpoint, Instance string
	// Epoch is the process that it was issued to.
	Epoch   uint64
	State   CredentialState
	Expires time.Time
}

// instanceCredentialFields is the wire form of `icred.<endpoint>.<instance>.<credId>`.
type instanceCredentialFields struct {
	V            int    `json:"v"`
	CredID       string `json:"credId"`
	Holder       string `json:"holder"`
	Endpoint     string `json:"endpoint"`
	Instance     string `json:"instance"`
	ProcessEpoch uint64 `json:"processEpoch"`
	State        string `json:"state"`
	Exp          int64  `json:"exp"` // ms since 1970
}

// EncodeInstanceCredential writes a credential of an instance. It refuses one that
// DecodeInstanceCredential would not take.
func EncodeInstanceCredential(c InstanceCredential) ([]byte, error) {
	f := instanceCredentialFields{V: rowVersion, CredID: c.ID, Holder: c.Holder.String(), Endpoint: c.Endpoint, Instance: c.Instance,
		ProcessEpoch: c.Epoch, State: string(c.State), Exp: millis(c.Expires)}
	if why := f.fault(); why != "" {
		return nil, messages.InternalFault.Because("credential of %s: %s", c.Holder, why)
	}
	return encode(f)
}

// DecodeInstanceCredential reads a credential of an instance, or says messages.RowCorrupt.
func DecodeInstanceCredential(row Row) (InstanceCredential, error) {
	var f instanceCredentialFields
	if err := decode(row, &f); err != nil {
		return InstanceCredential{}, err
	}
	if why := f.fault(); why != "" {
		return InstanceCredential{}, corrupt(row.Key, why)
	}
	if InstanceCredentialKey(f.Endpoint, f.Instance, f.CredID) != row.Key {
		return InstanceCredential{}, corrupt(row.Key, "names another key")
	}
	holder, _ := parseHolder(f.Holder) // fault has checked it
	return InstanceCredential{ID: f.CredID, Holder: holder, Endpoint: f.Endpoint, Instance: f.Instance, Epoch: f.ProcessEpoch,
		State: CredentialState(f.State), Expires: instant(f.Exp)}, nil
}

func (f instanceCredentialFields) fault() string {
	_, err := parseHolder(f.Holder)
	switch {
	case f.V != rowVersion:
		return "unknown version"
	case !isToken(f.CredID):
		return "names no credential"
	case !isToken(f.Endpoint), names.CheckUID(f.Instance) != nil:
		return "names no instance"
	case err != nil:
		return "the holder is no principal"
	case f.ProcessEpoch > largestNumber, !isInstant(f.Exp):
		return "a number is out of range"
	case f.State != string(CredentialActive) && f.State != string(CredentialRevoked):
		return "unknown state"
	}
	return ""
}

// parseHolder reads the dotted form of whoever may serve: a principal, or one of
// the infrastructure's.
func parseHolder(dotted string) (messages.Principal, error) {
	actor, local := strings.CutPrefix(dotted, names.LocalOwner+".")
	if !local {
		return names.ParsePrincipal(dotted)
	}
	return messages.Principal{Owner: names.LocalOwner, Actor: actor}, names.CheckActor(actor)
}
