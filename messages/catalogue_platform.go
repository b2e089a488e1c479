package messages

// Refusals of the platform's door.
var (
	// PlatformAbsent is a space that nobody hosts.
	PlatformAbsent = Error{Code: FailedPrecondition, Reason: "platform.absent", Message: "this space has no hosting platform",
		Operator: "the embedding program gives the space its assignments"}
	// PlatformAway is a platform that does not tell what is assigned.
	PlatformAway = Error{Code: Unavailable, Reason: "platform.away", Message: "what is assigned cannot be read now, retry shortly", Retryable: true}
	// NotAssigned is a request about what is not assigned, or not any more.
	NotAssigned = Error{Code: PermissionDenied, Reason: "platform.not-assigned", Message: "this instance is not assigned",
		Operator: "the platform's assignment names another instance, account or revision, or none"}
)
