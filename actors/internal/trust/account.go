package trust

// Account names one of the five accounts of a chain.
type Account string

// The accounts.
const (
	SYS  Account = "SYS"
	AUTH Account = "AUTH"
	DATA Account = "DATA"
	CTRL Account = "CTRL"
	SVC  Account = "SVC"
)

// nameIn is what the account's JWT is called. SYS belongs to the operator; all
// others carry the space they belong to.
func (a Account) nameIn(space string) string {
	if a == SYS {
		return string(SYS)
	}
	return string(a) + "_" + space
}

// RailSubject is the subtree of the control rail. It is served in CTRL, exported
// to SVC alone, and imported there under the same subjects with the caller's
// identity attached by the server.
func RailSubject(space string) string { return "cotal." + space + ".rail.>" }
