package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/ports"
)

type rotateInput struct {
	Idempotent
	OneSession
	Body rotateBody
}

type rotateReply struct {
	SessionFields
	NewProxy  *proxyReply `json:"new_proxy"`
	RotatedAt maybeStamp  `json:"rotated_at"`
}

// TransformSchema lets the objects that may be missing be null.
func (rotateReply) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return nullable(s, "proxy", "failure", "auto_top_up", "new_proxy")
}

type renewInput struct {
	Purchase
	OneSession
	Body renewBody
}

type renewBody struct {
	_            struct{} `json:"-" additionalProperties:"true"`
	DurationDays decimal  `json:"duration_days,omitempty"`
	MaxCost      decimal  `json:"max_cost,omitempty"`
}

// TransformSchema sets the bounds and the description.
func (renewBody) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	amend(s, "duration_days", createBounds["duration_days"],
		"One that the product lists. The session's own is the default.")
	amend(s, "max_cost", createBounds["max_cost"], "US dollars with at most 6 decimals; a dearer renewal is refused.")
	return s
}

// declareChanges declares what changes a session.
func (s *sessionsService) declareChanges() {
	opResult(s.api, operation{
		ID:         "rotate-session",
		Method:     http.MethodPost,
		Path:       "/sessions/{session_id}/rotate",
		Tag:        "sessions",
		Summary:    "Give a dynamic session a new exit",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		EmptyBody:  true,
		Doc: "The session_id stays. The older proxy address means the new exit too; open tunnels finish on " +
			"the old one.",
		OK: []reply{
			{
				Status: ok,
				Doc:    "The session with its new exit.",
				Data:   rotateReply{exampleDynamic, exampleDynamic.Proxy, maybeStamp(exampleTime)},
			},
		},
		Refuses: and(ofLive, catalog.ErrOutOfStock, ports.ErrProvider, ports.ErrTimeout),
		Example: map[string]any{"reason": "http_403"},
	}, s.rotateSession)
	opResult(s.api, operation{
		ID:         "renew-session",
		Method:     http.MethodPost,
		Path:       "/sessions/{session_id}/renew",
		Tag:        "sessions",
		Summary:    "Extend a static session",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		EmptyBody:  true,
		Doc:        "Charged at today's price; extends from expires_at.",
		OK: []reply{
			{Status: ok, Doc: "The session with its later end, or a dry run.", Data: exampleStatic, Or: exampleDryRun},
			{
				Status: http.StatusAccepted,
				Doc:    "The outcome is not known yet; expires_at is unchanged. Poll Location.",
				Data:   exampleStatic,
			},
		},
		Refuses: and(
			ofLive,
			sessions.ErrPriceMismatch,
			catalog.ErrProductNotFound,
			catalog.ErrOutOfStock,
			account.ErrTierRequired,
			billing.ErrInsufficientBalance,
			billing.ErrBudgetExceeded,
			ports.ErrProvider,
			ports.ErrTimeout,
		),
		Example: map[string]any{"duration_days": 30},
	}, s.renewSession)
	end := operation{
		ID:      "terminate-session",
		Method:  http.MethodPost,
		Path:    "/sessions/{session_id}/terminate",
		Tag:     "sessions",
		Summary: "End a session",
		Scope:   account.SessionsWrite,
		Refuses: ofSession,
		Doc: "Repeating it answers 200 with the same state. What a dynamic session did not use is refunded. What a " +
			"seller may still deliver and does not take back stays held, and is charged or released when the outcome is " +
			"known: see cost.",
		OK: []reply{{Status: ok, Doc: "The session as it ended.", Data: exampleEnded}}}
	op(s.api, end, s.terminate)
	end.ID, end.Method, end.Path, end.Doc = "delete-session", http.MethodDelete, "/sessions/{session_id}",
		"The same as terminate."
	op(s.api, end, s.terminate)
}

func (s *sessionsService) rotateSession(ctx context.Context, in *rotateInput) (result[rotateReply], error) {
	id, err := in.id()
	if err != nil {
		return result[rotateReply]{}, err
	}
	key, err := in.call(ctx)
	if err != nil {
		return result[rotateReply]{}, err
	}
	done, err := s.Sessions.Rotate(
		ctx,
		sessions.Rotate{AgentID: caller(ctx), SessionID: id, Reason: in.Body.Reason, Call: key,
			CloseConnections: in.Body.CloseConnections},
	)
	if err != nil {
		return result[rotateReply]{}, err
	}
	r := s.toSession(done.View)
	data := rotateReply{r, r.Proxy, r.Rotation.LastRotatedAt}
	return result[rotateReply]{Status: ok, Data: data, Replayed: done.Replayed}, nil
}

func (s *sessionsService) renewSession(ctx context.Context, in *renewInput) (result[any], error) {
	id, err := in.id()
	if err != nil {
		return result[any]{}, err
	}
	key, dry, err := in.terms(ctx)
	if err != nil {
		return result[any]{}, err
	}
	done, err := s.Sessions.Renew(
		ctx,
		sessions.Renew{AgentID: caller(ctx), SessionID: id, Days: string(in.Body.DurationDays),
			MaxCost: in.Body.MaxCost.money(), Call: key, DryRun: dry},
	)
	return s.bought(done, err)
}

func (s *sessionsService) terminate(ctx context.Context, in *sessionPath) (int, sessionReply, error) {
	id, err := in.id()
	if err != nil {
		return 0, sessionReply{}, err
	}
	v, err := s.Sessions.Terminate(ctx, caller(ctx), id)
	return ok, s.toSession(v), err
}
