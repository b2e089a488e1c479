package broker

import "github.com/cotal-ai/authplane/actors/internal/trust"

// PlatformReadiness is `platform-readiness`: it asks one service of DATA how it is.
// endpoint is the service's name with `_` for `.`.
func PlatformReadiness(endpoint string) Role {
	return Role{
		name: "platform-readiness", account: trust.DATA, endpoint: endpoint,
		publish: []string{"$SRV.PING.{endpoint}", "$SRV.INFO.{endpoint}.*", "$SRV.STATS.{endpoint}.*"},
	}
}
