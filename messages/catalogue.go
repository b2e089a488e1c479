package messages

// The catalogue: every way this service says no. Entries are values and are
// matched with errors.Is. Text may be bettered; Code and Reason are stable.
var (
	// InternalFault is what an error without an entry becomes at a face.
	InternalFault = Error{Code: Internal, Reason: "internal", Message: "something failed inside the service",
		Operator: "the log line with this request id has the cause", Next: "authplane status"}

	// Requests.

	// Malformed is input whose shape is wrong. Nothing was written.
	Malformed = Error{Code: BadRequest, Reason: "request.malformed", Message: "the request is malformed"}
	// NoSuchRoute is a path nothing answers.
	NoSuchRoute = Error{Code: NotFound, Reason: "request.route", Message: "nothing here"}
	// MethodRefused is a path asked with a method it does not have.
	MethodRefused = Error{Code: BadRequest, Reason: "request.method", Message: "the method is not allowed here"}
	// BodyTooLarge is a body above the limit.
	BodyTooLarge = Error{Code: BadRequest, Reason: "request.too-large", Message: "the body is too large"}
	// MediaTypeRefused is a body that is neither JSON nor a form.
	MediaTypeRefused = Error{Code: BadRequest, Reason: "request.media-type", Message: "the content type is not accepted here"}
	// OriginRefused is a request that a web page made.
	OriginRefused = Error{Code: PermissionDenied, Reason: "request.origin", Message: "requests of web pages are refused"}

	// Proofs: bearers, provider tokens, machine secrets.

	// ProofMissing is a connect or exchange without any proof.
	ProofMissing = Error{Code: Unauthenticated, Reason: "proof.missing", Message: "no proof of identity was presented",
		Operator: "the client connected without a bearer in auth_token", Next: "authplane help token"}
	// ProofInvalid is a proof that does not verify.
	ProofInvalid = Error{Code: Unauthenticated, Reason: "proof.invalid", Message: "the proof of identity does not verify",
		Operator: "wrong issuer, audience, signature or claims", Next: "authplane help token"}
	// ProofExpired is a proof that has lapsed.
	ProofExpired = Error{Code: Unauthenticated, Reason: "proof.expired", Message: "the proof of identity has expired",
		Operator: "the client must exchange again", Next: "authplane help token"}
	// ProviderUnreachable is an identity provider whose keys cannot be had now.
	ProviderUnreachable = Error{Code: Unavailable, Reason: "proof.provider-unreachable", Message: "the identity provider cannot be reached",
		Operator: "keys of the provider could not be fetched; machines and the ledger work without it", Next: "authplane status", Retryable: true}
	// ProviderAbsent is a provider's proof where no provider is configured.
	ProviderAbsent = Error{Code: Unimplemented, Reason: "proof.no-provider", Message: "no identity provider is configured",
		Operator: "configure one; until then only machines exchange", Next: "name the owner (--owner) instead, or an issuer under idp in authplane.yaml"}
	// CapabilityInvalid is a call without the capability of this start.
	CapabilityInvalid = Error{Code: Unauthenticated, Reason: "capability.invalid", Message: "the capability is missing or wrong",
		Operator: "read the capability file of the running service", Next: "authplane status"}

	// Keys and secrets of a space.

	// KeyringDamaged is a document of signing keys that is not what was written.
	KeyringDamaged = Error{Code: FailedPrecondition, Reason: "keys.damaged", Message: "the signing keys cannot be read",
		Operator: "the document is torn or was altered; it is never made anew, since every bearer hangs on it", Next: "restore the secrets directory"}
	// KeyringForeign is a document of signing keys that belongs to another space.
	KeyringForeign = Error{Code: FailedPrecondition, Reason: "keys.foreign", Message: "the signing keys are of another space",
		Operator: "a secrets directory was copied or mixed up", Next: "restore the secrets directory"}
	// KeyTooEarly is a step of a rotation before its time. Rotations are done through
	// the package; no verb does one yet.
	KeyTooEarly = Error{Code: FailedPrecondition, Reason: "keys.too-early", Message: "it is too early for this step of the rotation",
		Operator: "caches and bearers of the former step still live", Next: "repeat the step later"}
	// KeyInUse is a step that the state of the keys does not allow.
	KeyInUse = Error{Code: FailedPrecondition, Reason: "keys.in-use", Message: "the state of the keys does not allow this step",
		Operator: "keys go from published to active, superseded and retired, one rotation at a time", Next: "repeat the step later"}
	// KeyUnknown is a step that names no key of the space.
	KeyUnknown = Error{Code: NotFound, Reason: "keys.unknown", Message: "no such key", Next: "repeat the step later"}
	// ChainStands is a trust chain asked for where one stands, whole or in part.
	ChainStands = Error{Code: AlreadyExists, Reason: "chain.stands", Message: "a trust chain stands here already",
		Operator: "nothing was changed; another chain would orphan whatever this one issued", Next: "use another directory"}
	// ConfigStands is a configuration asked for where one stands.
	ConfigStands = Error{Code: AlreadyExists, Reason: "config.stands", Message: "a configuration stands here already",
		Operator: "nothing was changed", Next: "use another directory"}
	// DevForeign is a development service asked for on the keys of another one.
	DevForeign = Error{Code: FailedPrecondition, Reason: "dev.foreign", Message: "dev runs only from a directory that it made",
		Operator: "nothing was changed; its identity provider believes everybody, so it would let everybody in", Next: "use another directory"}
	// KeysUnusable is key material that is torn, too widely readable, or of another
	// chain or space.
	KeysUnusable = Error{Code: FailedPrecondition, Reason: "keys.unusable", Message: "the key material cannot be used",
		Operator: "it is never made anew, since whatever was issued hangs on it", Next: "mend what is named, or restore the secrets directory"}
	// OwnerSecretDamaged is an owner secret that is too short to be one.
	OwnerSecretDamaged = Error{Code: FailedPrecondition, Reason: "keys.owner-secret", Message: "the owner secret cannot be used",
		Operator: "the secret is torn; it is never made anew, since every owner is derived from it", Next: "restore the secrets directory"}

	// Principals and grants.

	// NotGranted is a principal without a live grant.
	NotGranted = Error{Code: PermissionDenied, Reason: "grant.absent", Message: "not granted",
		Operator: "the principal has no live grant", Next: "authplane grant <owner>/<actor>"}
	// GrantStands is a grant that already stands.
	GrantStands = Error{Code: Conflict, Reason: "grant.live", Message: "a live grant exists",
		Operator: "edit it, or revoke it first", Next: "authplane show <owner>/<actor>"}
	// GrantNotFound is an edit or revocation of what is not there.
	GrantNotFound = Error{Code: NotFound, Reason: "grant.not-found", Message: "no live grant", Next: "authplane grants"}
	// GrantMoved is an edit against a revision that is no longer current.
	GrantMoved = Error{Code: Conflict, Reason: "grant.moved", Message: "the grant has changed since it was read",
		Next: "authplane grants"}
	// GrantKindMismatch is a proof of the wrong kind for the grant.
	GrantKindMismatch = Error{Code: PermissionDenied, Reason: "grant.kind", Message: "not granted",
		Operator: "a machine's grant cannot be used with a provider's proof", Next: "authplane grants"}
	// ScopeExceeded is a bearer or grant that asks for more than it may.
	ScopeExceeded = Error{Code: PermissionDenied, Reason: "grant.exceeded", Message: "more is asked than is granted",
		Operator: "the grant, or one of its parents, was narrowed", Next: "authplane grants"}
	// ParentMissing is a chain of parents that does not hold.
	ParentMissing = Error{Code: PermissionDenied, Reason: "grant.parent", Message: "the chain of parents does not hold",
		Operator: "a parent is missing, revoked, cyclic or more than 32 links away", Next: "authplane grants"}
	// ProfileUnknown is a permission profile that the configuration does not have.
	ProfileUnknown = Error{Code: PermissionDenied, Reason: "profile.unknown", Message: "there is no such permission profile",
		Operator: "the grant's role, or the bearer's profile, is not among the configured profiles", Next: "authplane grants"}

	// Incarnations.

	// IncarnationEnded is a proof of a life that is over.
	IncarnationEnded = Error{Code: PermissionDenied, Reason: "incarnation.ended", Message: "this incarnation has ended",
		Operator: "the principal was retired or granted anew; exchange again under its current grant", Next: "authplane grants"}
	// IncarnationStanding is a new life asked for while the old one stands.
	IncarnationStanding = Error{Code: FailedPrecondition, Reason: "incarnation.standing", Message: "the former incarnation has not ended",
		Operator: "retire the former incarnation, then grant again", Next: "authplane retire <owner>/<actor>"}
	// IncarnationSuperseded is the end asked for of a life that is over, while another
	// one is current.
	IncarnationSuperseded = Error{Code: Expired, Reason: "incarnation.superseded", Message: "another incarnation is current, nothing was changed",
		Next: "authplane show <owner>/<actor>"}
	// IncarnationUnknown is the end asked for of a life that nobody ever began.
	IncarnationUnknown = Error{Code: FailedPrecondition, Reason: "incarnation.unknown", Message: "there is nothing to end, nothing was changed",
		Next: "authplane grants"}
	// GateShut is an incarnation whose gate an operation holds shut.
	GateShut = Error{Code: PermissionDenied, Reason: "gate.shut", Message: "nothing may be issued to this principal now",
		Operator: "an operation holds the gate", Next: "authplane operations"}
	// CredentialGone is a credential that is revoked, superseded or unknown.
	CredentialGone = Error{Code: PermissionDenied, Reason: "credential.gone", Message: "the credential is no longer valid",
		Operator: "it was revoked, superseded or never issued", Next: "authplane help token"}
	// CredentialConflict is a credential asked for under the id of another one.
	CredentialConflict = Error{Code: Conflict, Reason: "credential.conflict", Message: "the id names another credential",
		Operator: "the same id asks for the same credential and no other; nothing was issued", Next: "authplane help token"}
	// CredentialExpired is a credential past its time.
	CredentialExpired = Error{Code: PermissionDenied, Reason: "credential.expired", Message: "the credential has expired",
		Operator: "the next exchange renews it", Next: "authplane help token"}

	// Our own inability.

	// Unproved is a decision asked for while the authority stream is not proved.
	Unproved = Error{Code: Unavailable, Reason: "authority.unproved", Message: "the authority cannot be read now, retry shortly",
		Operator: "no leader, no quorum beat yet, or the reader is restarting", Next: "authplane status", Retryable: true}
	// BrokerAway is a broker that does not answer.
	BrokerAway = Error{Code: Unavailable, Reason: "broker.away", Message: "the broker cannot be reached, retry shortly",
		Operator: "the NATS server or its JetStream leader does not answer", Next: "authplane status", Retryable: true}
	// OutcomeUnknown is a write whose answer never came, however often it was repeated.
	OutcomeUnknown = Error{Code: Unavailable, Reason: "write.unknown", Message: "the outcome is not known, read before you retry",
		Operator: "the write may or may not have landed; nothing was undone on a guess", Next: "authplane grants", Retryable: true}
	// Contended is a write that lost to others as often as it may.
	Contended = Error{Code: Unavailable, Reason: "write.contended", Message: "too many writers at once, retry shortly", Retryable: true}
	// ServiceAway is a command that found no service to talk to.
	ServiceAway = Error{Code: Unavailable, Reason: "service.away", Message: "no service answers",
		Operator: "none was started from this directory, or it has ended", Next: "authplane dev", Retryable: true}
	// ServiceStarting is a command that found a service which is not ready yet.
	ServiceStarting = Error{Code: Unavailable, Reason: "service.starting", Message: "the service is starting, or waits for its broker",
		Operator: "it waits for as long as it takes; its log says what for", Next: "authplane status", Retryable: true}
	// ServiceClosing is a request that came while the space closes.
	ServiceClosing = Error{Code: Unavailable, Reason: "service.closing", Message: "the service is closing", Retryable: true}
	// ActorAway is a request that met an actor between two lives.
	ActorAway = Error{Code: Unavailable, Reason: "actor.away", Message: "a part of the service is restarting, retry shortly",
		Next: "authplane tree", Retryable: true}
	// Busy is a queue that is full.
	Busy = Error{Code: Unavailable, Reason: "service.busy", Message: "too much at once, retry shortly", Retryable: true}
	// RateLimited is a peer with too many failures.
	RateLimited = Error{Code: Overloaded, Reason: "rate.limited", Message: "too many failures, slow down", Retryable: true}
	// TooLate is a connect that can no longer be answered in time.
	TooLate = Error{Code: Unavailable, Reason: "connect.too-late", Message: "the request could no longer be answered in time", Retryable: true}

	// Looking at, and injuring, the running service.

	// DenialNotFound is the id of a connect that is no longer, or never was, kept.
	DenialNotFound = Error{Code: NotFound, Reason: "denial.not-found", Message: "no such denial",
		Operator: "only the last 1,000 are kept", Next: "authplane explain"}
	// NoSuchActor is a path that names no actor.
	NoSuchActor = Error{Code: NotFound, Reason: "actor.unknown", Message: "no such actor", Next: "authplane tree"}
	// KillInapplicable is a way to die that this actor does not have now.
	KillInapplicable = Error{Code: Conflict, Reason: "actor.kill-inapplicable", Message: "the actor cannot be killed that way now",
		Next: "authplane tree"}

	// StateDirTaken is a state directory that a live process holds.
	StateDirTaken = Error{Code: FailedPrecondition, Reason: "state.taken", Message: "the state directory belongs to a running service",
		Operator: "give each process a state directory of its own", Next: "authplane status"}

	// The authority stream.

	// StreamForeign is a stream that is not the one this installation made.
	StreamForeign = Error{Code: FailedPrecondition, Reason: "stream.foreign", Message: "the authority stream is not ours",
		Operator: "it was deleted and made anew, or belongs to another installation", Next: "authplane status"}
	// StreamDrifted is a stream whose shape was changed.
	StreamDrifted = Error{Code: FailedPrecondition, Reason: "stream.drifted", Message: "the authority stream has changed shape",
		Operator: "somebody altered its configuration; it is never altered back", Next: "authplane status"}
	// RowCorrupt is a row that cannot be what we wrote.
	RowCorrupt = Error{Code: Internal, Reason: "row.corrupt", Message: "a record cannot be read",
		Operator: "a row is garbled or was deleted by hand", Next: "authplane status"}

	// The plane: its claim, its scans, its instances.

	// ClaimCorrupt is a claim that no process of ours can have written.
	ClaimCorrupt = Error{Code: FailedPrecondition, Reason: "claim.corrupt", Message: "the record of the plane cannot be read",
		Operator: "the plane's row is garbled or was deleted by hand; it is never written over", Next: "authplane status"}
	// ClaimLivePeer is a plane that another process runs.
	ClaimLivePeer = Error{Code: FailedPrecondition, Reason: "claim.live-peer", Message: "another process runs the plane",
		Operator: "it is connected; a process on standby takes over when it is gone", Next: "authplane status"}
	// ClaimUnknown is a holder of which nobody can say whether it is gone.
	ClaimUnknown = Error{Code: Unavailable, Reason: "claim.unknown", Message: "it cannot be told now who runs the plane, retry shortly",
		Operator: "the servers do not say enough about the former holder; if its server is lost for good, name that server",
		Next:     "authplane serve --server-lost <name>", Retryable: true}
	// ClaimConcurrent is a plane that others claimed at the same moment.
	ClaimConcurrent = Error{Code: FailedPrecondition, Reason: "claim.concurrent", Message: "another process claimed the plane at the same moment",
		Operator: "one of them has it; a process on standby takes over when that one is gone", Next: "authplane status"}
	// ClaimFenced is a use of the plane after this process lost hold of it.
	ClaimFenced = Error{Code: FailedPrecondition, Reason: "claim.fenced", Message: "this process stopped running the plane",
		Operator: "it takes the plane back by itself if nobody else has it", Next: "authplane status"}
	// ClaimReleased is a use of the plane after its release began.
	ClaimReleased = Error{Code: FailedPrecondition, Reason: "claim.released", Message: "this process gives the plane back",
		Operator: "the plane is closing", Next: "authplane status"}
	// PlaneAway is an operation asked of a process that does not hold the plane now.
	PlaneAway = Error{Code: Unavailable, Reason: "plane.away", Message: "this process does not run the plane now, ask the one that does, or retry shortly",
		Operator: "it takes the plane again by itself after a fence; if another process runs it, ask that one", Next: "authplane status", Retryable: true}
	// ClaimLost is a claim that is no longer this process's.
	ClaimLost = Error{Code: FailedPrecondition, Reason: "claim.lost", Message: "the plane is no longer this process's",
		Operator: "another process may run it; nothing of this one lands any more", Next: "authplane status"}
	// ReleaseUnreachable is a claim that may still stand, since the broker did not answer.
	ReleaseUnreachable = Error{Code: Unavailable, Reason: "claim.release-unreachable", Message: "the plane could not be given back, close again",
		Operator: "the broker did not answer; if this process ends so, whoever is on standby takes over by itself", Next: "close again", Retryable: true}
	// ScanIncomplete is an enumeration that cannot prove that it saw every row.
	ScanIncomplete = Error{Code: Unavailable, Reason: "scan.incomplete", Message: "the records could not be read whole, retry shortly",
		Operator: "a message was dropped, the consumer ended, or the replica lags; nothing was concluded", Next: "authplane status", Retryable: true}
	// ScanRefused is an enumeration that the stream will not run as it is meant.
	ScanRefused = Error{Code: FailedPrecondition, Reason: "scan.refused", Message: "the records cannot be enumerated",
		Operator: "a consumer of the scanner's name cannot be removed, or is not as it was made", Next: "authplane status"}
	// InstanceSuperseded is a registration that another one overtook.
	InstanceSuperseded = Error{Code: Conflict, Reason: "instance.superseded", Message: "another process registered this instance",
		Operator: "the newer process is the instance; this one must end", Next: "authplane instances"}
	// InstanceForeign is an instance that belongs to another principal.
	InstanceForeign = Error{Code: PermissionDenied, Reason: "instance.foreign", Message: "the instance belongs to another principal",
		Next: "authplane instances"}
	// InstanceNotFound is an instance that never registered.
	InstanceNotFound = Error{Code: NotFound, Reason: "instance.not-found", Message: "no such instance", Next: "authplane instances"}
	// InstanceHeld is a gate that cannot be opened, since what it waits for is not done.
	InstanceHeld = Error{Code: Unavailable, Reason: "instance.held", Message: "a former process of this instance is not gone yet, retry shortly",
		Operator: "its credentials are revoked, and a connection of it could not be proved gone", Next: "authplane instances", Retryable: true}
	// InstanceNotOpen is an instance whose gate a registration holds: nothing is issued to
	// it, and none of its processes is let in.
	InstanceNotOpen = Error{Code: FailedPrecondition, Reason: "instance.not-open", Message: "a registration holds the gate of this instance",
		Operator: "the registration ends by itself, or died, and then the next one or a repair goes on from there; only the process that is registered after it counts",
		Next:     "authplane instances"}
	// InstanceNotFrozen is a repair of a gate that needs none.
	InstanceNotFrozen = Error{Code: FailedPrecondition, Reason: "instance.not-frozen", Message: "the gate of this instance is open, nothing was changed",
		Operator: "there is no registration to repair", Next: "authplane instances"}
	// RegistrationAlive is a repair of a gate whose registration may still go on.
	RegistrationAlive = Error{Code: Unavailable, Reason: "instance.registering", Message: "a registration of this instance is under way, nothing was changed, retry shortly",
		Operator: "its connection still lives; it ends by itself within a minute", Next: "authplane instances", Retryable: true}
	// RegistrationUnknown is a repair of a gate whose registration cannot be told to be
	// over.
	RegistrationUnknown = Error{Code: Unavailable, Reason: "instance.registration-unknown",
		Message:  "it cannot be told whether the registration of this instance is over, nothing was changed, retry shortly",
		Operator: "a server did not list all its connections; unknown is never taken for gone", Next: "authplane roster", Retryable: true}

	// Operations: takeovers and retirements.

	// OperationNotFound is the id of an operation that was never begun.
	OperationNotFound = Error{Code: NotFound, Reason: "operation.not-found", Message: "no such operation", Next: "authplane operations"}
	// OperationConflict is an operation asked for under the id of another one.
	OperationConflict = Error{Code: Conflict, Reason: "operation.conflict", Message: "the id names another operation",
		Operator: "the same id resumes the same operation and no other; nothing was changed", Next: "authplane operations"}
	// OperationPending is an operation that is begun, or asked for, and not done yet.
	OperationPending = Error{Code: Unavailable, Reason: "operation.pending", Message: "it is denied already and will be ended, look again",
		Operator: "nothing is issued any more; what it waits for is shown with it", Next: "authplane operations", Retryable: true}
	// OperationUnderived is a retirement asked for under an id that is not the one which
	// derives from its incarnation.
	OperationUnderived = Error{Code: PermissionDenied, Reason: "operation.underived", Message: "the id is not that of this retirement, nothing was changed",
		Operator: "a retirement's id derives from its incarnation; leave it out", Next: "authplane operations"}
	// CallerRefused is a question on the control rail of somebody who may not ask it.
	CallerRefused = Error{Code: PermissionDenied, Reason: "rail.caller", Message: "the caller may not ask this, nothing was changed",
		Operator: "the rail answers users of SVC that were minted for one target each", Next: "authplane help retire"}
	// EvictionUnproved is somebody of whom it cannot be said that he is gone.
	EvictionUnproved = Error{Code: Unavailable, Reason: "eviction.unproved", Message: "it is not proved yet that nobody is connected, retry shortly",
		Operator: "a server did not list all its connections, or one is still there; a server that is gone for good must be forgotten",
		Next:     "authplane roster forget <name>", Retryable: true}
	// DrainUnproved is accepted work that is not ended yet.
	DrainUnproved = Error{Code: Unavailable, Reason: "drain.unproved", Message: "accepted work has not ended yet, retry shortly",
		Operator: "the services that accepted it are named", Next: "authplane operations", Retryable: true}
	// HandleNotFound is a signed handle that nothing was ever derived from.
	HandleNotFound = Error{Code: NotFound, Reason: "handle.not-found", Message: "no such handle", Next: "authplane operations"}
	// HandleFrozen is a handle from which nothing may be derived any more.
	HandleFrozen = Error{Code: PermissionDenied, Reason: "handle.frozen", Message: "the handle was revoked",
		Operator: "it and everything derived from it has ended", Next: "authplane operations"}
	// SessionUsed is a session that somebody has redeemed already.
	SessionUsed = Error{Code: Conflict, Reason: "session.used", Message: "the session was redeemed already",
		Operator: "a session is good for one redemption", Next: "authplane operations"}
	// ServerUnknown is a server that the roster does not have.
	ServerUnknown = Error{Code: NotFound, Reason: "roster.unknown", Message: "no such server in the roster", Next: "authplane roster"}
	// ServerAnswers is a server that is to be forgotten and lives.
	ServerAnswers = Error{Code: FailedPrecondition, Reason: "roster.answers", Message: "the server answers",
		Operator: "only a server that is gone for good is forgotten", Next: "authplane roster"}

	// SystemAbsent is a question to the servers where the system account is not ours.
	SystemAbsent = Error{Code: FailedPrecondition, Reason: "system.absent", Message: "the servers cannot be asked here",
		Operator: "this space is configured with eviction: expiry, without a way into the system account; nobody is swept or kicked", Next: "authplane operations"}

	// A connect request that did not prove to come from a server of ours.

	// RequestUnsealed is a connect request without a seal, or one that cannot be opened.
	RequestUnsealed = Error{Code: Unauthenticated, Reason: "request.unsealed", Message: "the connect request is not sealed to us",
		Operator: "check the xkey of the AUTH account", Next: "authplane status"}
	// RequestForged is a connect request whose signature or issuer does not hold.
	RequestForged = Error{Code: Unauthenticated, Reason: "request.forged", Message: "the connect request does not come from a known server",
		Operator: "its signature, issuer or sealing key does not hold, or the server is not on the list", Next: "authplane status"}
)
