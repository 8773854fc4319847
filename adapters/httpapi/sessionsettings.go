package httpapi

import (
	"context"
	"net/http"

	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/session"
)

type changeInput struct {
	OneSession
	Body changeBody
}

// changeBody is the settings of a session. What is not given stays as it is.
type changeBody struct {
	_      struct{} `json:"-" additionalProperties:"true"`
	Labels *labels  `json:"labels,omitempty" doc:"Replaces all labels; {} removes them."`
}

// change returns what the body asks for.
func (b changeBody) change(agentID, sessionID string) sessions.Change {
	c := sessions.Change{AgentID: agentID, SessionID: sessionID}
	if b.Labels != nil {
		c.Labels = new(session.Labels(*b.Labels))
	}
	return c
}

// declareSettings declares what an agent may set of a session that it has.
func (s *Server) declareSettings() {
	op(s, operation{
		ID:        "change-session",
		Method:    http.MethodPatch,
		Path:      "/sessions/{session_id}",
		Tag:       "sessions",
		Summary:   "Change the settings of a session",
		Doc:       "A field that is left out stays as it is.",
		Scope:     account.SessionsWrite,
		EmptyBody: true,
		Refuses:   ofSession,
		OK:        []reply{{Status: ok, Doc: "The session after the change.", Data: exampleDynamic}},
		Example:   map[string]any{"labels": map[string]string{"team": "prices"}},
	}, s.changeSession)
}

func (s *Server) changeSession(ctx context.Context, in *changeInput) (int, sessionReply, error) {
	id, err := in.id()
	if err != nil {
		return 0, sessionReply{}, err
	}
	v, err := s.Sessions.Change(ctx, in.Body.change(caller(ctx), id))
	return ok, s.toSession(v), err
}
