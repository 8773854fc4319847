package httpapi

import (
	"slices"

	"agentproxy/domain"
)

// refusals lists what an operation refuses with.
func refusals(list ...*domain.Error) []*domain.Error { return list }

// and adds to a list of refusals.
func and(list []*domain.Error, more ...*domain.Error) []*domain.Error {
	return append(slices.Clone(list), more...)
}
