package messages

// Principal names whose connection it is and which of theirs: an owner and an
// actor of that owner. The zero value names nobody.
//
// A Principal is only a pair of strings; names.ParsePrincipal is what checks the
// grammar. Both parts are free of dots and dashes, so both written forms split
// back without doubt.
type Principal struct {
	// Owner is `u_` and 26 base32 characters for a person, `p_…` for a platform,
	// or `local` for infrastructure.
	Owner string `json:"owner"`
	// Actor is 1 to 64 characters of [A-Za-z0-9_].
	Actor string `json:"actor"`
}

// String is the dotted form, `<owner>.<actor>`: the one used in row keys, in
// listings and as a parent link.
func (p Principal) String() string {
	if p.IsZero() {
		return ""
	}
	return p.Owner + "." + p.Actor
}

// Name is the dashed form, `<owner>-<actor>`: the one a NATS server shows for a
// connection and that stands in the inbox prefix.
func (p Principal) Name() string {
	if p.IsZero() {
		return ""
	}
	return p.Owner + "-" + p.Actor
}

// IsZero reports whether p names nobody.
func (p Principal) IsZero() bool { return p == Principal{} }

// InboxPrefix is the prefix below which the principal's replies arrive, without
// the trailing dot. The client must use it, and is given that subtree and no other.
func (p Principal) InboxPrefix() string { return "_INBOX_" + p.Name() }
