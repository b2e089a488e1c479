package messages

// Entries of what controllers ask.
var (
	// SuperviseMissing is a person at a controller's door who may not run any.
	SuperviseMissing = Error{Code: PermissionDenied, Reason: "controller.supervise", Message: "running a controller takes the scope supervise",
		Operator: "no other scope implies it; it is read from the grant at every request", Next: "authplane grant <owner>/<actor> --scope supervise"}
	// ControllerSpace is a request that is meant for another space.
	ControllerSpace = Error{Code: PermissionDenied, Reason: "controller.space", Message: "the request is for another space"}
	// ControllerActor is a proof of another actor than the one that the request names.
	ControllerActor = Error{Code: PermissionDenied, Reason: "controller.actor", Message: "the proof is another actor's"}
	// ControllerUnregistered is a controller whose instance was never registered.
	ControllerUnregistered = Error{Code: FailedPrecondition, Reason: "controller.unregistered", Message: "the instance is not registered",
		Operator: "its host registers it first, as the controller of its owner", Next: "authplane instances"}
	// ControllerUnprepared is a door that comes after others which were not passed.
	ControllerUnprepared = Error{Code: FailedPrecondition, Reason: "controller.unprepared", Message: "the process has not prepared, or not activated",
		Operator: "a process prepares, then activates, and then renews", Next: "authplane controllers"}
	// ControllerTaken is a second controller that takes itself for the same process.
	ControllerTaken = Error{Code: Conflict, Reason: "controller.taken", Message: "the process was prepared with other keys, or activated with other commands",
		Operator: "two programs run as one process of the instance; each start registers, and has an epoch of its own", Next: "authplane controllers"}
	// ReceiptInvalid is a door asked without the receipt of the registration that counts.
	ReceiptInvalid = Error{Code: PermissionDenied, Reason: "controller.receipt", Message: "the receipt is not that of the registration",
		Operator: "it is another registration's, process's or holder's; activate gives the one that counts", Next: "authplane controllers"}
	// ControllerRequestConflict is the id of one request used for another one.
	ControllerRequestConflict = Error{Code: Conflict, Reason: "controller.request-conflict", Message: "the id names another request",
		Operator: "the same id asks the same question and no other; nothing was issued"}
	// ControllerRequests is a controller that asks more often than is remembered.
	ControllerRequests = Error{Code: Overloaded, Reason: "controller.requests", Message: "the controller asks too often, slow down",
		Operator: "each request is remembered for up to 2 minutes, so that its answer can be given again", Retryable: true}
	// ControllerRetiresOthers is a retirement asked for of somebody else's principal.
	ControllerRetiresOthers = Error{Code: PermissionDenied, Reason: "controller.target", Message: "the target belongs to another owner"}
	// FamilyOutsider is an eviction of somebody who holds nothing of the instance.
	FamilyOutsider = Error{Code: PermissionDenied, Reason: "maintenance.outsider", Message: "not a holder of the instance's credentials, nobody was evicted",
		Next: "authplane controllers"}
)
