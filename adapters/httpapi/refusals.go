package httpapi

import (
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/domain/session"
)

// refusals lists what an operation refuses with.
func refusals(list ...*domain.Error) []*domain.Error { return list }

// and adds to a list of refusals.
func and(list []*domain.Error, more ...*domain.Error) []*domain.Error {
	return append(slices.Clone(list), more...)
}

var (
	// ofSession is what every operation on one session can refuse with.
	ofSession = refusals(session.ErrNotFound)
	// ofLive is what an action on a live session can refuse with besides.
	ofLive = and(ofSession, session.ErrNotReady, session.ErrOver)
	// ofOrder is what every operation on one recharge order can refuse with.
	ofOrder = refusals(recharge.ErrNotFound)
)
