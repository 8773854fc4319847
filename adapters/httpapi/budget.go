package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

type budgetReply struct {
	DailyLimit      limit  `json:"daily_limit" doc:"Of a UTC day; null: none."`
	TotalLimit      limit  `json:"total_limit" doc:"Ever; null: none."`
	AlertThresholds []int  `json:"alert_thresholds" doc:"Percents of a limit."`
	Paused          bool   `json:"paused" doc:"Refuses every purchase."`
	SpentToday      money  `json:"spent_today" doc:"Charges and open holds."`
	SpentTotal      money  `json:"spent_total"`
	Currency        string `json:"currency" enum:"USD"`
}

type budgetBody struct {
	_               struct{}   `json:"-" additionalProperties:"true"`
	DailyLimit      decimal    `json:"daily_limit,omitempty" nullable:"true" minimum:"0" doc:"null: no limit."`
	TotalLimit      decimal    `json:"total_limit,omitempty" nullable:"true" minimum:"0" doc:"null: no limit."`
	AlertThresholds thresholds `json:"alert_thresholds,omitempty"`
	Paused          *bool      `json:"paused,omitempty" nullable:"true"`
}

// thresholds is a list that may be given: nil was not, null is the empty list.
type thresholds struct{ to *[]int }

// UnmarshalJSON notes that the field was given.
func (t *thresholds) UnmarshalJSON(b []byte) error {
	t.to = &[]int{}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	return json.Unmarshal(b, t.to)
}

// Schema describes the type in the document.
func (thresholds) Schema(huma.Registry) *huma.Schema {
	one, hundred, most := 1.0, 100.0, 20
	return &huma.Schema{Type: huma.TypeArray, Nullable: true, MaxItems: &most,
		Description: "Percents from 1 to 100, at most 20; each fires once a day. null: none.",
		Items:       &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &hundred}}
}

func (s *billingService) declareBudget() {
	op(s.api, operation{
		ID:      "get-budget",
		Method:  http.MethodGet,
		Path:    "/billing/budget",
		Tag:     "billing",
		Summary: "The agent's own spending guard",
		Doc:     "The limits that the agent has set for itself by PUT /billing/budget, and what it has spent.",
		Scope:   account.BillingRead,
		OK:      []reply{{Status: ok, Doc: "The budget.", Data: exampleBudget}},
	}, func(ctx context.Context, _ *struct{}) (int, budgetReply, error) {
		v, err := s.Wallet.Budget(ctx, caller(ctx))
		return ok, toBudget(v), err
	})
	op(s.api, operation{
		ID:        "set-budget",
		Method:    http.MethodPut,
		Path:      "/billing/budget",
		Tag:       "billing",
		Summary:   "Change the spending guard",
		Scope:     account.BillingWrite,
		EmptyBody: true,
		Doc:       "Replaces the given fields.",
		OK:        []reply{{Status: ok, Doc: "The budget after the change.", Data: exampleBudget}},
		Example: map[string]any{
			"daily_limit":      5,
			"total_limit":      nil,
			"alert_thresholds": []int{50, 90},
			"paused":           false,
		},
	}, func(ctx context.Context, in *struct{ Body budgetBody }) (int, budgetReply, error) {
		b := ledger.SetBudget{AgentID: caller(ctx), Thresholds: in.Body.AlertThresholds.to, Paused: in.Body.Paused}
		var err error
		if b.Daily, err = in.Body.DailyLimit.limit("daily_limit"); err != nil {
			return 0, budgetReply{}, err
		}
		if b.Total, err = in.Body.TotalLimit.limit("total_limit"); err != nil {
			return 0, budgetReply{}, err
		}
		v, err := s.Wallet.SetBudget(ctx, b)
		return ok, toBudget(v), err
	})
}

func toBudget(v ledger.BudgetView) budgetReply {
	r := budgetReply{
		DailyLimit:      limit{v.Daily},
		TotalLimit:      limit{v.Total},
		AlertThresholds: v.Thresholds,
		Paused:          v.Paused,
		SpentToday:      money(v.SpentToday),
		SpentTotal:      money(v.SpentTotal),
		Currency:        domain.Currency,
	}
	if r.AlertThresholds == nil {
		r.AlertThresholds = []int{}
	}
	return r
}

var (
	exampleDaily  = domain.MustMoney("5")
	exampleBudget = budgetReply{
		DailyLimit:      limit{&exampleDaily},
		AlertThresholds: []int{50, 90},
		SpentToday:      usd("0.25"),
		SpentTotal:      usd("0.25"),
		Currency:        domain.Currency,
	}
)
