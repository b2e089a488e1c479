package ledger

const (
	familyInstance           = "inst"
	familyInstanceCredential = "icred"
	familyOperation          = "op"
	familyFrontier           = "frontier"

	// PlaneKey is the one row that says who runs the plane.
	PlaneKey = "plane"
	// OwedKey is the one row of what the plane has begun and not done.
	OwedKey = "owed"

	// AllAsked lists what every process asks to be retired.
	AllAsked = familyAsked + ".*"
	// AllInstances lists the gates of every instance of every service.
	AllInstances = familyInstance + ".*.*"
)

// InstanceKey is where the gate of a service's instance stands.
func InstanceKey(endpoint, instance string) string {
	return familyInstance + "." + endpoint + "." + instance
}

// InstancesOf lists the gates of a service's instances.
func InstancesOf(endpoint string) string { return InstanceKey(endpoint, "*") }

// InstanceCredentialKey is where a credential of a service's instance stands.
func InstanceCredentialKey(endpoint, instance, credentialID string) string {
	return familyInstanceCredential + "." + endpoint + "." + instance + "." + credentialID
}

// OperationKey is where a takeover or a retirement stands.
func OperationKey(id string) string { return familyOperation + "." + id }

// FrontierKey is where it stands how far the streams were when an incarnation ended.
func FrontierKey(uid string) string { return familyFrontier + "." + uid }

// LineageOf lists what was derived from a signed handle.
func LineageOf(h Handle) string { return LineageKey(h, "*", "*") }

// CredentialsOf lists the descendants of an incarnation.
func CredentialsOf(uid string) string { return familyCredential + "." + uid + ".*" }

// InstanceCredentialsOf lists the credentials of a service's instance.
func InstanceCredentialsOf(endpoint, instance string) string {
	return InstanceCredentialKey(endpoint, instance, "*")
}
