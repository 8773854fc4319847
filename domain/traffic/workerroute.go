package traffic

import (
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// WorkerRoute is where connections of a worker leave, or, without a worker's ID, connections of which
// each gets another exit.
type WorkerRoute struct {
	Worker   worker.Worker
	Upstream *procurement.Endpoint // the upstream proxy of the worker's exit; nil: Exit is an address of this host
	Token    string                // what names the exit to its seller
	// Exits are what a place has, where these are addresses of this host.
	Exits []session.Exit
	// Fresh returns the upstream proxy of the n-th connection to a place, and what names its exit.
	Fresh func(n uint64) (procurement.Endpoint, string, error)
}
