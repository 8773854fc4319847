package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
)

type topUpInput struct {
	Purchase
	OneSession
	Body topUpBody
}

type topUpBody struct {
	_         struct{} `json:"-" additionalProperties:"true"`
	TrafficGB decimal  `json:"traffic_gb"`
	MaxCost   decimal  `json:"max_cost,omitempty"`
}

// TransformSchema sets the bounds and the description.
func (topUpBody) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	amend(s, "traffic_gb", createBounds["traffic_gb"], "At most 3 decimals, within the product's bounds.")
	amend(s, "max_cost", createBounds["max_cost"], "US dollars with at most 6 decimals; a dearer addition is refused.")
	return s
}

// declareTopUp declares what adds traffic to a session.
func (s *sessionsService) declareTopUp() {
	opResult(s.api, operation{
		ID:         "add-traffic",
		Method:     http.MethodPost,
		Path:       "/sessions/{session_id}/traffic",
		Tag:        "sessions",
		Summary:    "Add traffic to a dynamic session",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		Doc: "Held at today's price; what was bought before keeps its own. The address stays. What is left at the " +
			"end comes back.",
		OK: []reply{{Status: ok, Doc: "The session with its traffic, or a dry run.", Data: exampleDynamic,
			Or: exampleDryRun}},
		Refuses: and(
			ofLive,
			sessions.ErrPriceMismatch,
			catalog.ErrProductNotFound,
			catalog.ErrOutOfStock,
			account.ErrTierRequired,
			billing.ErrInsufficientBalance,
			billing.ErrBudgetExceeded,
		),
		Example: map[string]any{"traffic_gb": 0.5, "max_cost": 1},
	}, s.addTraffic)
}

func (s *sessionsService) addTraffic(ctx context.Context, in *topUpInput) (result[any], error) {
	id, err := in.id()
	if err != nil {
		return result[any]{}, err
	}
	key, dry, err := in.terms(ctx)
	if err != nil {
		return result[any]{}, err
	}
	done, err := s.Sessions.TopUp(ctx, sessions.TopUp{AgentID: caller(ctx), SessionID: id,
		Bytes: in.Body.TrafficGB.bytes(), MaxCost: in.Body.MaxCost.money(), Call: key, DryRun: dry})
	return s.bought(done, err)
}
