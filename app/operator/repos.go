package operator

import (
	"agentproxy/app/ordering"
	"agentproxy/ports"
)

// trailRepos is the repositories of the trail.
type trailRepos interface {
	AuditTrail() ports.AuditTrail
}

// repos is the repositories of the other use cases.
type repos interface {
	ordering.Repos
	Overview() ports.Overview
	Peers() ports.Peers
	Workers() ports.Workers
	ExitMeasures() ports.ExitMeasures
	Replacements() ports.Replacements
}

func narrow(store ports.Store) ports.Unit[repos] {
	return ports.Narrow(store, func(tx ports.Tx) repos { return tx })
}
