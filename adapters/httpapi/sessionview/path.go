package sessionview

import (
	"context"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/app/sessions"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// OneSession is the path of every operation on one session.
type OneSession struct {
	SessionID string `path:"session_id" doc:"The session, prefix sess_."`
}

// ID returns the session's id, or an error if the text cannot be one.
func (p OneSession) ID() (string, error) {
	if len(p.SessionID) > 64 || !strictjson.IsName(p.SessionID) {
		return "", session.ErrNotFound
	}
	return p.SessionID, nil
}

// Read reads the session for the agent of the call, which is charged for its workers.
func (p OneSession) Read(ctx context.Context, from *sessions.Service) (sessions.View, error) {
	id, err := p.ID()
	if err != nil {
		return sessions.View{}, err
	}
	v, err := from.Read(ctx, endpoint.Caller(ctx), id)
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
