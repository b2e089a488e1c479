package face

import (
	"net/http"

	"github.com/cotal-ai/authplane/messages"
)

// LoopbackConfig is what the loopback face needs besides.
type LoopbackConfig struct {
	// Control shows the running service. Required.
	Control Control
	// Instances registers processes of services, and shows the gates. Required.
	Instances Instances
	// Enrolments enrols machines; nil leaves the paths out.
	Enrolments Enrolments
	// Controllers lists the instances that are run by controllers. Required.
	Controllers Controllers
	// Runs shows runs, and revokes one. Required.
	Runs Runs
	// Capability is the secret of this start; whoever can read its file may ask. An
	// absent one lets nobody in.
	Capability messages.Secret
	// FaultInjection opens POST /v1/debug/kill; without it that path is nothing.
	FaultInjection bool
	// MetricsPage serves GET /metrics; nil leaves the path out.
	MetricsPage http.Handler
}

// Loopback makes the face of this machine.
func Loopback(c Config, l LoopbackConfig) *Face {
	f := newFace("loopback", c)
	f.runs, f.enrolments = l.Runs, l.Enrolments
	f.control, f.instances, f.controllers, f.capability, f.metricsPage = l.Control, l.Instances, l.Controllers, l.Capability, l.MetricsPage

	json, both, form := []string{mediaJSON}, []string{mediaJSON, mediaForm}, []string{mediaForm}
	rs := &f.routes
	rs.on("POST", "/exchange", endpoint{serve: f.exchange, guarded: true, queued: true, proves: true, media: both})
	rs.on("POST", "/oauth2/token", endpoint{serve: f.token, guarded: true, queued: true, proves: true, oauth: true, media: form})

	rs.on("GET", "/v1/grants", endpoint{serve: f.listGrants, guarded: true, queued: true})
	rs.on("POST", "/v1/grants", endpoint{serve: f.putGrant, guarded: true, queued: true, waits: true, media: json})
	rs.on("GET", "/v1/grants/{owner}/{actor}", endpoint{serve: f.showGrant, guarded: true, queued: true})
	rs.on("PUT", "/v1/grants/{owner}/{actor}", endpoint{serve: f.editGrant, guarded: true, queued: true, waits: true, media: json})
	rs.on("DELETE", "/v1/grants/{owner}/{actor}", endpoint{serve: f.revokeGrant, guarded: true, queued: true})

	if l.Enrolments != nil {
		rs.on("POST", "/v1/enroll", endpoint{serve: f.enroll, guarded: true, queued: true, media: json})
		rs.on("GET", "/v1/enroll/{token_hash}", endpoint{serve: f.showEnrolment, guarded: true, queued: true})
	}

	rs.on("POST", "/v1/retire", endpoint{serve: f.retire, guarded: true, queued: true, waits: true, media: json})
	rs.on("POST", "/v1/takeover", endpoint{serve: f.takeover, guarded: true, queued: true, waits: true, media: json})
	rs.on("GET", "/v1/operations", endpoint{serve: f.listOperations, guarded: true, queued: true})
	rs.on("GET", "/v1/operations/{id}", endpoint{serve: f.showOperation, guarded: true, queued: true})
	rs.on("GET", "/v1/roster", endpoint{serve: f.roster, guarded: true, queued: true})
	rs.on("DELETE", "/v1/roster/{name}", endpoint{serve: f.forgetServer, guarded: true, queued: true})
	rs.on("GET", "/v1/instances", endpoint{serve: f.listInstances, guarded: true, queued: true})
	rs.on("POST", "/v1/instances", endpoint{serve: f.registerInstance, guarded: true, queued: true, media: json})
	rs.on("GET", "/v1/instances/{endpoint}", endpoint{serve: f.listInstances, guarded: true, queued: true})
	rs.on("GET", "/v1/instances/{endpoint}/{instance}", endpoint{serve: f.showInstance, guarded: true, queued: true, waits: true})
	rs.on("POST", "/v1/instances/{endpoint}/{instance}/credential", endpoint{serve: f.issueToInstance, guarded: true, queued: true, media: json})
	rs.on("GET", "/v1/controllers", endpoint{serve: f.listControllers, guarded: true, queued: true})
	rs.on("GET", "/v1/runs", endpoint{serve: f.listRuns, guarded: true, queued: true})
	rs.on("GET", "/v1/runs/{endpoint}", endpoint{serve: f.listRuns, guarded: true, queued: true})
	rs.on("GET", "/v1/runs/{endpoint}/{run}", endpoint{serve: f.showRun, guarded: true, queued: true})
	rs.on("POST", "/v1/runs/{endpoint}/{run}/revoke", endpoint{serve: f.revokeRun, guarded: true, queued: true, media: json})
	rs.on("POST", "/v1/repair", endpoint{serve: f.repair, guarded: true, queued: true, media: json})

	// What shows the service itself takes no turn: it answers from memory, and is
	// wanted most when there is too much to do.
	rs.on("GET", "/v1/status", endpoint{serve: f.status, guarded: true})
	rs.on("GET", "/v1/tree", endpoint{serve: f.tree, guarded: true})
	rs.on("GET", "/v1/connections", endpoint{serve: f.connections, guarded: true})
	rs.on("GET", "/v1/denials", endpoint{serve: f.denials, guarded: true})
	rs.on("GET", "/v1/denials/{id}", endpoint{serve: f.denial, guarded: true})
	rs.on("GET", "/v1/events", endpoint{serve: f.events, guarded: true, streams: true})
	if l.FaultInjection {
		rs.on("POST", "/v1/debug/kill", endpoint{serve: f.kill, guarded: true, media: json})
	}

	rs.on("GET", "/livez", endpoint{serve: f.live})
	rs.on("GET", "/readyz", endpoint{serve: f.ready})
	rs.on("GET", "/startupz", endpoint{serve: f.startup})
	rs.on("GET", "/jwks", endpoint{serve: f.jwks})
	if l.MetricsPage != nil {
		rs.on("GET", "/metrics", endpoint{serve: f.metrics})
	}
	return f
}
