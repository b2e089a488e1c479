package broker

// AuthorityBucket is the KV bucket of the authority's rows in CTRL.
func AuthorityBucket(space string) string { return "cotal_authority_" + space }

// AuthorityStream is the stream behind AuthorityBucket.
func AuthorityStream(space string) string { return "KV_" + AuthorityBucket(space) }

// RecordsBucket is the KV bucket in CTRL of what services write.
func RecordsBucket(space string) string { return "cotal_records_" + space }

// RecordsStream is the stream behind RecordsBucket.
func RecordsStream(space string) string { return "KV_" + RecordsBucket(space) }

// ChangedSubject is where the authority stream repeats the headers of what was
// written, `cotal.<space>.changed.>`: a nudge to look again, never evidence.
func ChangedSubject(space string) string { return "cotal." + space + ".changed.>" }

// PresenceSubject is where processes say in AUTH that they live, one token per
// instance.
func PresenceSubject(space, instance string) string {
	return "cotal." + space + ".presence." + instance
}

// SettleSubject is where an operation asks in AUTH that decisions which began before
// be finished, and SettledSubject where processes say that theirs are.
func SettleSubject(space, operation string) string { return "cotal." + space + ".settle." + operation }

// SettledSubject is where SettleSubject is answered.
func SettledSubject(space, operation string) string {
	return "cotal." + space + ".settled." + operation
}

// The question every connect asks in AUTH, and the queue group that answers it.
const (
	CalloutSubject = "$SYS.REQ.USER.AUTH"
	CalloutQueue   = "cotal-callout"
)
