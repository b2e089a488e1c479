package broker

import (
	"strconv"

	"github.com/cotal-ai/authplane/actors/internal/trust"
)

// Names of the consumers that scanners make: these with `-<lane>` behind, and
// nobody else makes any.
const (
	LedgerScan  = "cotal-ledger-scan"
	RecordsScan = "cotal-records-scan"
	// ScanLanes is how many of each there are; lanes count from 0.
	ScanLanes = 4
)

// Barrier is `auth-barrier`: it claims the plane, and writes what barriers change.
// It makes and reads both streams, leaves its beat in each as a milestone, and hears
// that the claim moved or that somebody asks for a retirement.
func Barrier(instance string) Role {
	return Role{
		name: "auth-barrier", account: trust.CTRL, instance: instance,
		publish: []string{
			"$JS.API.STREAM.INFO.{authority}",
			"$JS.API.STREAM.MSG.GET.{authority}",
			"$JS.API.STREAM.CREATE.{records}",
			"$JS.API.STREAM.INFO.{records}",
			"$JS.API.STREAM.MSG.GET.{records}",
			"{rows}.plane",
			"{rows}.owed",
			"{rows}.op.*",
			"{rows}.frontier.*",
			"{rows}.head.*.*",
			"{rows}.cred.*.*",
			"{rows}.bysrc.*.*.*.*",
			"{rows}.srcgate.*.*",
			"{rows}.grant.*.*",
			"{rows}.inst.*.*",
			"{rows}.icred.*.*.*",
			"{rows}.beat.{instance}",
			"{recorded}.beat.{instance}",
		},
		subscribe: []string{"cotal.{space}.changed.plane", "cotal.{space}.changed.asked.*"},
	}
}

// Issuer is `remote-manager-issuer`: it issues to registered instances, remembers what
// their controllers asked for, and redeems sessions, of which one half is a principal's: its credential, and its head touched.
func Issuer(instance string) Role {
	return Role{
		name: "remote-manager-issuer", account: trust.CTRL, instance: instance,
		publish: []string{
			"$JS.API.STREAM.INFO.{authority}",
			"$JS.API.STREAM.MSG.GET.{authority}",
			"{rows}.inst.*.*",
			"{rows}.icred.*.*.*",
			"{rows}.ctl.*.*",
			"{rows}.session.*",
			"{rows}.head.*.*",
			"{rows}.cred.*.*",
			"{rows}.beat.{instance}",
		},
	}
}

// Registration is `auth-registration`: it registers this process as the instance of
// `auth` that it is, and ends.
func Registration(instance string) Role {
	return Role{
		name: "auth-registration", account: trust.CTRL, instance: instance, life: shortLived,
		publish: []string{
			"$JS.API.STREAM.INFO.{authority}",
			"$JS.API.STREAM.MSG.GET.{authority}",
			"{rows}.inst.auth.{instance}",
			"{rows}.icred.auth.{instance}.*",
			"{rows}.beat.{instance}",
		},
	}
}

// HostRegistration is `host-registration`: it registers one instance of a host's
// own endpoint, and ends. endpoint is the service's name with `_` for `.`.
func HostRegistration(endpoint, instance string) Role {
	return Role{
		name: "host-registration", account: trust.CTRL, instance: instance, endpoint: endpoint, life: shortLived,
		publish: []string{
			"$JS.API.STREAM.INFO.{authority}",
			"$JS.API.STREAM.MSG.GET.{authority}",
			"{rows}.inst.{endpoint}.{instance}",
			"{rows}.icred.{endpoint}.{instance}.*",
			"{rows}.beat.{instance}",
		},
	}
}

// LedgerScanner is `auth-scan`: it enumerates the authority stream. The claim on the
// plane names its connection, so it never renews and never reconnects.
func LedgerScanner() Role {
	return Role{name: "auth-scan", account: trust.CTRL, life: unending, publish: scans("{authority}", LedgerScan)}
}

// RecordsScanner is `records-scan`: LedgerScanner for what services write.
func RecordsScanner() Role {
	return Role{name: "records-scan", account: trust.CTRL, life: unending, publish: scans("{records}", RecordsScan)}
}

// scans lists what it takes to make, see, read and remove the consumers of every
// lane. What a consumer is cannot be limited by a subject, which is why nobody else
// makes one.
func scans(stream, name string) []string {
	var publish []string
	for lane := range ScanLanes {
		consumer := stream + "." + name + "-" + strconv.Itoa(lane)
		publish = append(publish,
			"$JS.API.CONSUMER.CREATE."+consumer,
			"$JS.API.CONSUMER.DELETE."+consumer,
			"$JS.API.CONSUMER.INFO."+consumer,
			"$JS.API.CONSUMER.MSG.NEXT."+consumer,
		)
	}
	return publish
}

// isEndpoint reports whether s is one lower-case token of a key.
func isEndpoint(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}
