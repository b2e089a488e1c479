package messages

// Enrolments of machines, and what they need.
var (
	// ExchangeAbsent is an enrolment that could not tell where to exchange.
	ExchangeAbsent = Error{Code: FailedPrecondition, Reason: "enrol.no-exchange", Message: "no public exchange is configured, nothing was changed",
		Operator: "a machine that is enrolled is told where it exchanges its secret", Next: "configure public in authplane.yaml"}
	// EnrolmentNotFound is a secret's hash under which nobody was enrolled.
	EnrolmentNotFound = Error{Code: NotFound, Reason: "enrol.not-found", Message: "nobody is enrolled with this secret", Next: "authplane grants"}
	// EnrolmentPending is an enrolment whose former try is being undone.
	EnrolmentPending = Error{Code: Unavailable, Reason: "enrol.pending", Message: "a former enrolment of this name is being undone, retry shortly",
		Operator: "what was made for it is removed first", Next: "authplane status", Retryable: true}
	// FootprintRefused is a footprint that cannot be made as it is configured.
	FootprintRefused = Error{Code: FailedPrecondition, Reason: "footprint.refused", Message: "what the machine needs cannot be made",
		Operator: "a stream or bucket of the configured footprint is missing or does not take it, or something else stands under its name",
		Next:     "mend what is named, then enrol again"}
)
