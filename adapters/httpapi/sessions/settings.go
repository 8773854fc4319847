package sessions

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

type changeInput struct {
	sessionview.OneSession
	Body changeBody
}

// changeBody is the settings of a session. What is not given stays as it is.
type changeBody struct {
	Labels *value.Labels `json:"labels,omitempty" doc:"Replaces all labels; {} removes them."`

	AllowedIPs *[]string `json:"allowed_ips,omitempty" maxItems:"32" doc:"Addresses and networks (CIDR) that clients may connect from; [] is anywhere."`

	AutoTopUp maybeAutoTopUp `json:"auto_top_up,omitempty"`
}

// change returns what the body asks for.
func (b changeBody) change(agentID, sessionID string, by account.Spender) sessions.Change {
	c := sessions.Change{AgentID: agentID, SessionID: sessionID, By: by}
	if b.Labels != nil {
		c.Labels = new(session.Labels(*b.Labels))
	}
	c.AllowedIPs, c.AutoTopUp = b.AllowedIPs, b.AutoTopUp.to
	return c
}

// declareSettings declares what an agent may set of a session that it has.
func (s *service) declareSettings() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:        "change-session",
		Keys:      endpoint.OwnSession,
		Method:    http.MethodPatch,
		Path:      "/sessions/{session_id}",
		Tag:       "sessions",
		Summary:   "Change the settings of a session",
		Doc:       "A field that is left out stays as it is.",
		Scope:     account.SessionsWrite,
		EmptyBody: true,
		Refuses: endpoint.And(sessionview.OfSession, session.ErrOver, catalog.ErrProductNotFound,
			account.ErrKeyRestricted),
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The session after the change.",
			Data: sessionview.ExampleDynamic}},
		Example: map[string]any{"labels": map[string]string{"team": "prices"}},
	}, s.changeSession)
	endpoint.DeclareResult(s.api, endpoint.Operation{
		ID:      "rotate-password",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodPost,
		Path:    "/sessions/{session_id}/rotate-password",
		Tag:     "sessions",
		Summary: "Replace the password of a session",
		Doc: "The old one ends on every replica within a second. Open connections go on, unless " +
			"close_connections is true.",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		EmptyBody:  true,
		Refuses:    sessionview.OfLive,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The session with its new password.",
			Data: sessionview.ExampleDynamic}},
		Example: map[string]any{"close_connections": true},
	}, s.rotatePassword)
}

type rotatePasswordInput struct {
	endpoint.Idempotent
	sessionview.OneSession
	Body rotatePasswordBody
}

type rotatePasswordBody struct {
	CloseConnections bool `json:"close_connections,omitempty" doc:"Closes what is open with the old password."`
}

func (s *service) rotatePassword(ctx context.Context, in *rotatePasswordInput) (endpoint.Result[sessionview.Session],
	error) {
	caller := endpoint.CallIn(ctx).Caller
	if d := s.api.Limits.TakePassword(caller.AgentID, caller.PerMinute); !d.Allowed {
		return endpoint.Result[sessionview.Session]{}, account.ErrRateLimited.After(d.RetryAfter)
	}
	done, err := s.Sessions.ReplacePassword(ctx, sessions.ReplacePassword{AgentID: endpoint.Caller(ctx),
		SessionID: in.SessionID, CloseConnections: in.Body.CloseConnections, Call: in.Call()})
	return endpoint.Result[sessionview.Session]{Status: http.StatusOK, Data: s.ToSession(done.View),
		Replayed: done.Replayed}, err
}

func (s *service) changeSession(ctx context.Context, in *changeInput) (int, sessionview.Session, error) {
	v, err := s.Sessions.Change(ctx, in.Body.change(endpoint.Caller(ctx), in.SessionID, endpoint.Spender(ctx)))
	return http.StatusOK, s.ToSession(v), err
}
