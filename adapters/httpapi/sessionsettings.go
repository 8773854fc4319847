package httpapi

import (
	"context"
	"net/http"

	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
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

	AllowedIPs *[]string `json:"allowed_ips,omitempty" maxItems:"32" doc:"Addresses and networks (CIDR) that clients may connect from; [] is anywhere."`

	AutoTopUp maybeAutoTopUp `json:"auto_top_up,omitempty"`
}

// change returns what the body asks for.
func (b changeBody) change(agentID, sessionID string) sessions.Change {
	c := sessions.Change{AgentID: agentID, SessionID: sessionID}
	if b.Labels != nil {
		c.Labels = new(session.Labels(*b.Labels))
	}
	c.AllowedIPs, c.AutoTopUp = b.AllowedIPs, b.AutoTopUp.to
	return c
}

// declareSettings declares what an agent may set of a session that it has.
func (s *sessionsService) declareSettings() {
	op(s.api, operation{
		ID:        "change-session",
		Method:    http.MethodPatch,
		Path:      "/sessions/{session_id}",
		Tag:       "sessions",
		Summary:   "Change the settings of a session",
		Doc:       "A field that is left out stays as it is.",
		Scope:     account.SessionsWrite,
		EmptyBody: true,
		Refuses:   and(ofSession, session.ErrOver, catalog.ErrProductNotFound),
		OK:        []reply{{Status: ok, Doc: "The session after the change.", Data: exampleDynamic}},
		Example:   map[string]any{"labels": map[string]string{"team": "prices"}},
	}, s.changeSession)
	opResult(s.api, operation{
		ID:      "rotate-password",
		Method:  http.MethodPost,
		Path:    "/sessions/{session_id}/rotate-password",
		Tag:     "sessions",
		Summary: "Replace the password of a session",
		Doc: "The old one ends on every replica within a second. Open connections go on, unless " +
			"close_connections is true.",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		EmptyBody:  true,
		Refuses:    ofLive,
		OK:         []reply{{Status: ok, Doc: "The session with its new password.", Data: exampleDynamic}},
		Example:    map[string]any{"close_connections": true},
	}, s.rotatePassword)
}

type rotatePasswordInput struct {
	Idempotent
	OneSession
	Body rotatePasswordBody
}

type rotatePasswordBody struct {
	_                struct{} `json:"-" additionalProperties:"true"`
	CloseConnections bool     `json:"close_connections,omitempty" doc:"Closes what is open with the old password."`
}

func (s *sessionsService) rotatePassword(ctx context.Context, in *rotatePasswordInput) (result[sessionReply], error) {
	id, err := in.id()
	if err != nil {
		return result[sessionReply]{}, err
	}
	key, err := in.call(ctx)
	if err != nil {
		return result[sessionReply]{}, err
	}
	done, err := s.Sessions.ReplacePassword(ctx, sessions.ReplacePassword{AgentID: caller(ctx), SessionID: id,
		CloseConnections: in.Body.CloseConnections, Call: key})
	return result[sessionReply]{Status: ok, Data: s.toSession(done.View), Replayed: done.Replayed}, err
}

func (s *sessionsService) changeSession(ctx context.Context, in *changeInput) (int, sessionReply, error) {
	id, err := in.id()
	if err != nil {
		return 0, sessionReply{}, err
	}
	v, err := s.Sessions.Change(ctx, in.Body.change(caller(ctx), id))
	return ok, s.toSession(v), err
}
