package endpoint

import (
	"slices"

	"agentproxy/domain"
)

// Refusals lists what an operation refuses with.
func Refusals(list ...*domain.Error) []*domain.Error { return list }

// And adds to a list of refusals.
func And(list []*domain.Error, more ...*domain.Error) []*domain.Error {
	return append(slices.Clone(list), more...)
}
