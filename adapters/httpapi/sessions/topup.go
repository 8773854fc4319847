package sessions

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
)

type topUpInput struct {
	endpoint.Purchase
	sessionview.OneSession
	Body topUpBody
}

type topUpBody struct {
	TrafficGB value.Decimal `json:"traffic_gb" exclusiveMinimum:"0" doc:"At most 3 decimals, within the product's bounds."`
	MaxCost   value.Decimal `json:"max_cost,omitempty" exclusiveMinimum:"0" doc:"US dollars with at most 6 decimals; a dearer addition is refused."`
}

// declareTopUp declares what adds traffic to a session.
func (s *service) declareTopUp() {
	endpoint.DeclareResult(s.api, endpoint.Operation{
		ID:         "add-traffic",
		Keys:       endpoint.OwnSession,
		Method:     http.MethodPost,
		Path:       "/sessions/{session_id}/traffic",
		Tag:        "sessions",
		Summary:    "Add traffic to a dynamic session",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		Doc: "Held at today's price; what was bought before keeps its own. The address stays. What is left at the " +
			"end comes back.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The session with its traffic, or a dry run.",
			Data: sessionview.ExampleDynamic,
			Or:   endpoint.ExampleDryRun}},
		Refuses: endpoint.And(
			sessionview.OfLive,
			errPrice,
			catalog.ErrProductNotFound,
			catalog.ErrOutOfStock,
			account.ErrTierRequired,
			errBalance,
			billing.ErrBudgetExceeded,
			account.ErrKeyRestricted,
		),
		Example: map[string]any{"traffic_gb": 0.5, "max_cost": 1},
	}, s.addTraffic)
}

func (s *service) addTraffic(ctx context.Context, in *topUpInput) (endpoint.Result[any], error) {
	done, err := s.Sessions.TopUp(ctx, sessions.TopUp{AgentID: endpoint.Caller(ctx), By: endpoint.Spender(ctx),
		SessionID: in.SessionID, Bytes: in.Body.TrafficGB.Bytes(), MaxCost: in.Body.MaxCost.Money(), Call: in.Call(),
		DryRun: in.IsDry()})
	return s.bought(ctx, done, err)
}
