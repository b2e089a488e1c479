package messages

// The catalogue, for runs: what is refused of their admission and their journals.
var (
	// RunNotAdmitted is a run that nobody admitted, or that is another instance's.
	RunNotAdmitted = Error{Code: PermissionDenied, Reason: "run.not-admitted", Message: "the run is not admitted for this instance, nothing was written",
		Operator: "nobody admitted it, or another instance of the service runs it", Next: "authplane runs"}
	// RunNotFound is a run that is shown or revoked and was never admitted.
	RunNotFound = Error{Code: NotFound, Reason: "run.not-found", Message: "no such run", Next: "authplane runs"}
	// RunConflict is an admission of a run that was admitted for another caller or instance.
	RunConflict = Error{Code: Conflict, Reason: "run.conflict", Message: "the run was admitted for somebody else, nothing was changed",
		Operator: "another caller started it, or another instance runs it; a new run needs a new id", Next: "authplane runs"}
	// RunRequestUsed is a request that started another run.
	RunRequestUsed = Error{Code: PermissionDenied, Reason: "run.request-used", Message: "the request was used for something else",
		Operator: "a request is good for one run, and a repeated one for the same answer; whoever wants another run asks anew", Next: "authplane runs"}
	// RunUnwitnessed is a request of which nothing shows that its caller made it.
	RunUnwitnessed = Error{Code: PermissionDenied, Reason: "run.unwitnessed", Message: "nothing shows that the caller made this request",
		Operator: "its signature does not hold, or nobody saw it; it was forwarded by a controller that cannot make one up", Next: "authplane runs"}
	// RunExceeded is a request that its caller may not make.
	RunExceeded = Error{Code: PermissionDenied, Reason: "run.exceeded", Message: "the caller may not make this request",
		Operator: "the caller's grant does not let it publish the request's subject, or the request is another owner's", Next: "authplane grants"}
	// RunTooWide is an admission for a caller whose grant no credential of a run has room for.
	RunTooWide = Error{Code: FailedPrecondition, Reason: "run.too-wide", Message: "the caller's grant lists more than a run's credentials have room for, nothing was written",
		Operator: "fewer or wider patterns in the grant", Next: "authplane grants"}
	// RunRevoked is a run that was revoked.
	RunRevoked = Error{Code: PermissionDenied, Reason: "run.revoked", Message: "the run was revoked",
		Operator: "nothing is issued for it any more", Next: "authplane runs"}
	// RunEnded is a run whose journal says that it is over.
	RunEnded = Error{Code: FailedPrecondition, Reason: "run.ended", Message: "the run has ended",
		Operator: "another one needs a new id", Next: "authplane runs"}
	// RunAttemptTaken is an attempt that is not the next one, or is somebody else's.
	RunAttemptTaken = Error{Code: Conflict, Reason: "run.attempt", Message: "this is not the next attempt of the run, nothing was issued",
		Operator: "another driver reserved it, or a later one", Next: "authplane runs"}
	// RunNotWaiting is an answer to what does not wait for one, or the change of an answer
	// that nobody gave.
	RunNotWaiting = Error{Code: FailedPrecondition, Reason: "run.not-waiting", Message: "the step does not wait for this answer",
		Operator: "its pause is settled already, or was never reached", Next: "authplane runs"}
	// ObserverOff is a request that is to be witnessed by observation where nobody observes.
	ObserverOff = Error{Code: FailedPrecondition, Reason: "run.observer-off", Message: "requests are not observed here, have the caller sign them",
		Operator: "the space is configured without an observer of requests", Next: "authplane status"}

	// JournalStarted is a run that is to be new and has a journal.
	JournalStarted = Error{Code: Conflict, Reason: "journal.started", Message: "the run was started already",
		Operator: "a run is started once; to run it again, fork it under a new id", Next: "authplane runs"}
	// JournalEmpty is a run that is to be resumed and has no journal.
	JournalEmpty = Error{Code: FailedPrecondition, Reason: "journal.empty", Message: "the run has nothing to resume from",
		Operator: "it was never started", Next: "authplane runs"}
	// JournalDamaged is a journal that is not whole, or holds what no driver wrote.
	JournalDamaged = Error{Code: FailedPrecondition, Reason: "journal.damaged", Message: "the journal of the run is not whole",
		Operator: "records are missing, or others than the run's drivers wrote to it; it is never resumed", Next: "authplane runs"}
	// JournalMoving is a journal that others wrote to each time it had been replayed.
	JournalMoving = Error{Code: Unavailable, Reason: "journal.moving", Message: "the journal grew whenever it had been read, retry shortly",
		Operator: "the former driver still writes", Next: "authplane runs", Retryable: true}
	// LeaseStale is a driver whose lease is older than the journal's last.
	LeaseStale = Error{Code: Conflict, Reason: "journal.stale-lease", Message: "the lease is older than the one that the run is driven under",
		Operator: "another driver took the run over; this one must end", Next: "authplane runs"}
	// JournalSuperseded is an append of a driver that another one followed.
	JournalSuperseded = Error{Code: Conflict, Reason: "journal.superseded", Message: "another driver took the run over, nothing was written",
		Operator: "this driver must end", Next: "authplane runs"}
	// JournalStalled is an append whose acknowledgement never came.
	JournalStalled = Error{Code: Unavailable, Reason: "journal.stalled", Message: "it is not known whether the record was written, replay the journal",
		Operator: "nothing more is written by this driver before it took the journal anew", Next: "authplane runs", Retryable: true}
	// JournalClosed is an append to a journal that its driver closed.
	JournalClosed = Error{Code: FailedPrecondition, Reason: "journal.closed", Message: "the journal was closed"}
)
