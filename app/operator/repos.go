package operator

import "agentproxy/ports"

// trailRepos is the repositories of the trail.
type trailRepos interface {
	AuditTrail() ports.AuditTrail
}
