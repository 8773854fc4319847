package sessions

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/ports"
)

type rotateInput struct {
	endpoint.Idempotent
	sessionview.OneSession
	Body sessionview.RotateBody
}

type rotateReply struct {
	sessionview.Session
	NewProxy  *sessionview.Proxy `json:"new_proxy" doc:"The proxy after the rotation; null while it is under way."`
	RotatedAt value.MaybeStamp   `json:"rotated_at" doc:"When it rotated; null while that is under way."`
}

type renewInput struct {
	endpoint.Purchase
	sessionview.OneSession
	Body renewBody
}

type renewBody struct {
	_            struct{}      `json:"-" additionalProperties:"true"`
	DurationDays value.Decimal `json:"duration_days,omitempty" minimum:"1" maximum:"3650" multipleOf:"1" doc:"One that the product lists. The session's own is the default."`
	MaxCost      value.Decimal `json:"max_cost,omitempty" exclusiveMinimum:"0" doc:"US dollars with at most 6 decimals; a dearer renewal is refused."`
}

type endInput struct {
	endpoint.Tried
	sessionview.OneSession
}

// declareChanges declares what changes a session.
func (s *service) declareChanges() {
	endpoint.DeclareResult(s.api, endpoint.Operation{
		ID: "rotate-session", Keys: endpoint.OwnSession, Stores: true, Method: http.MethodPost,
		Path:       "/sessions/{session_id}/rotate",
		Tag:        "sessions",
		Summary:    "Give a dynamic session a new exit",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		EmptyBody:  true,
		Doc: "The session_id stays. The older proxy address means the new exit too; open tunnels finish on " +
			"the old one.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The session with its new exit.",
			Data: rotateReply{sessionview.ExampleDynamic, sessionview.ExampleDynamic.Proxy,
				value.MaybeStamp(openapi.ExampleTime)}}},
		Refuses: endpoint.And(sessionview.OfLive, catalog.ErrOutOfStock, exit.ErrNotMet, ports.ErrProvider,
			ports.ErrTimeout),
		Example: map[string]any{"reason": "http_403"},
	}, s.rotateSession)
	endpoint.DeclareResult(s.api, endpoint.Operation{
		ID: "renew-session", Keys: endpoint.OwnSession,
		Method:     http.MethodPost,
		Path:       "/sessions/{session_id}/renew",
		Tag:        "sessions",
		Summary:    "Extend a static session",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		EmptyBody:  true,
		Doc:        "Charged at today's price; extends from expires_at.",
		OK: []endpoint.Reply{
			{Status: http.StatusOK, Doc: "The session with its later end, or a dry run.", Data: sessionview.ExampleStatic,
				Or: endpoint.ExampleDryRun},
			{
				Status: http.StatusAccepted,
				Doc:    "The outcome is not known yet; expires_at is unchanged. Poll Location.",
				Data:   sessionview.ExampleStatic,
			},
		},
		Refuses: endpoint.And(
			sessionview.OfLive,
			errPrice,
			catalog.ErrProductNotFound,
			catalog.ErrOutOfStock,
			account.ErrTierRequired,
			errBalance,
			billing.ErrBudgetExceeded, account.ErrKeyRestricted,
			ports.ErrProvider,
			ports.ErrTimeout,
		),
		Example: map[string]any{"duration_days": 30},
	}, s.renewSession)
	end := endpoint.Operation{
		ID: "terminate-session", Keys: endpoint.OwnSession, Usage: true,
		Method:    http.MethodPost,
		Path:      "/sessions/{session_id}/terminate",
		Tag:       "sessions",
		Summary:   "End a session",
		Scope:     account.SessionsWrite,
		Published: true,
		Refuses:   sessionview.OfSession,
		Doc: "Repeating it answers 200 with the same state. What a dynamic session did not use is refunded, the time left " +
			"of fixed IPs is not. What a seller may still deliver and does not take back stays held, and is charged or " +
			"released when the outcome is known: see cost.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The session as it ended, or a dry run.",
			Data: sessionview.ExampleEnded, Or: endpoint.ExampleDryRun}}}
	endpoint.Declare(s.api, end, s.terminate)
	end.Published = false
	end.ID, end.Method, end.Path, end.Doc = "delete-session", http.MethodDelete, "/sessions/{session_id}",
		"The same as terminate."
	endpoint.Declare(s.api, end, s.terminate)
}

func (s *service) rotateSession(ctx context.Context, in *rotateInput) (endpoint.Result[rotateReply], error) {
	rule, err := in.Body.Require.Rule()
	if err != nil {
		return endpoint.Result[rotateReply]{}, err
	}
	done, err := s.Sessions.Rotate(
		ctx,
		sessions.Rotate{AgentID: endpoint.Caller(ctx), SessionID: in.SessionID, Reason: in.Body.Reason, Call: in.Call(),
			CloseConnections: in.Body.CloseConnections, Require: rule},
	)
	if err != nil {
		return endpoint.Result[rotateReply]{}, err
	}
	r := s.ToSession(done.View)
	data := rotateReply{r, r.Proxy, r.Rotation.LastRotatedAt}
	return endpoint.Result[rotateReply]{Status: http.StatusOK, Data: data, Replayed: done.Replayed}, nil
}

func (s *service) renewSession(ctx context.Context, in *renewInput) (endpoint.Result[any], error) {
	done, err := s.Sessions.Renew(
		ctx,
		sessions.Renew{AgentID: endpoint.Caller(ctx), By: endpoint.Spender(ctx), SessionID: in.SessionID,
			Days: string(in.Body.DurationDays), MaxCost: in.Body.MaxCost.Money(), Call: in.Call(), DryRun: in.IsDry()},
	)
	return s.bought(ctx, done, err)
}

func (s *service) terminate(ctx context.Context, in *endInput) (int, any, error) {
	if in.IsDry() {
		e, err := sessions.Endings{Service: s.Sessions}.Try(ctx, endpoint.Caller(ctx), in.SessionID)
		r := endpoint.ToDryRun(ctx, &e.Quote)
		r.Refunded, r.Forfeited = new(value.Money(e.Refunded)), new(value.Money(e.Forfeited))
		return http.StatusOK, r, err
	}
	v, err := s.Sessions.Terminate(ctx, endpoint.Caller(ctx), in.SessionID)
	return http.StatusOK, s.ToSession(v), err
}
