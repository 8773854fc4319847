package sessionview

import (
	"context"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/app/sessions"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// OneSession is the path of every operation on one session. What cannot be an id is refused before the handler.
type OneSession struct {
	SessionID string `path:"session_id" doc:"The session, prefix sess_."`
}

// Read reads the session for the agent of the call, which is charged for its workers.
func (p OneSession) Read(ctx context.Context, from *sessions.Service) (sessions.View, error) {
	v, err := from.Read(ctx, endpoint.Caller(ctx), p.SessionID)
	endpoint.ChargeWorkers(ctx, v.Workers.Total)
	return v, err
}

var (
	// OfSession is what every operation on one session can refuse with.
	OfSession = endpoint.Refusals(session.ErrNotFound)
	// OfLive is what an action on a live session can refuse with besides.
	OfLive = endpoint.And(OfSession, session.ErrNotReady, session.ErrOver)
)

// RotateBody is the body of a session's rotation.
type RotateBody struct {
	_ struct{} `json:"-" additionalProperties:"true"`
	RotateFields
}

// RotateFields are the fields of a rotation, of a session or of a worker.
type RotateFields struct {
	Reason health.RotationReason `json:"reason,omitempty" nullable:"true" doc:"Counts as evidence about the exit that is left. manual is the default."`

	CloseConnections bool `json:"close_connections,omitempty" doc:"Closes what is open on the old exit."`

	Require *Require `json:"require,omitempty" doc:"What exits must be; {}: anything. It stays with the session."`
}
