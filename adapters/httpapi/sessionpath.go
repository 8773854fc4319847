package httpapi

import (
	"context"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/app/sessions"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// sessionPath is the path of every operation on one session.
type sessionPath struct {
	SessionID string `path:"session_id" doc:"The session, prefix sess_."`
}

// OneSession is sessionPath under an exported name, by which huma reads it where it is embedded.
type OneSession = sessionPath

// id returns the session's id, or an error if the text cannot be one.
func (p sessionPath) id() (string, error) {
	if len(p.SessionID) > 64 || !strictjson.IsName(p.SessionID) {
		return "", session.ErrNotFound
	}
	return p.SessionID, nil
}

// read reads the session for the agent of the call.
func (p sessionPath) read(ctx context.Context, from *sessions.Service) (sessions.View, error) {
	id, err := p.id()
	if err != nil {
		return sessions.View{}, err
	}
	return from.Read(ctx, caller(ctx), id)
}

var (
	// ofSession is what every operation on one session can refuse with.
	ofSession = refusals(session.ErrNotFound)
	// ofLive is what an action on a live session can refuse with besides.
	ofLive = and(ofSession, session.ErrNotReady, session.ErrOver)
)

// rotateBody is what an agent may say about a rotation.
type rotateBody struct {
	_      struct{}              `json:"-" additionalProperties:"true"`
	Reason health.RotationReason `json:"reason,omitempty" nullable:"true" doc:"Counts as evidence about the exit that is left. manual is the default."`

	CloseConnections bool `json:"close_connections,omitempty" doc:"Closes what is open on the old exit."`
}
