package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

type budgetReply struct {
	DailyLimit      value.Limit `json:"daily_limit" doc:"Of a UTC day; null: none."`
	TotalLimit      value.Limit `json:"total_limit" doc:"Ever; null: none."`
	AlertThresholds []int       `json:"alert_thresholds" doc:"Percents of a limit."`
	Paused          bool        `json:"paused" doc:"Refuses every purchase."`
	SpentToday      value.Money `json:"spent_today" doc:"Charges and open holds."`
	SpentTotal      value.Money `json:"spent_total" doc:"What was spent since the registration, in US dollars."`
	Currency        string      `json:"currency" enum:"USD" doc:"Of all amounts."`
}

type budgetBody struct {
	DailyLimit      value.Decimal `json:"daily_limit,omitempty" nullable:"true" minimum:"0" doc:"null: no limit."`
	TotalLimit      value.Decimal `json:"total_limit,omitempty" nullable:"true" minimum:"0" doc:"null: no limit."`
	AlertThresholds thresholds    `json:"alert_thresholds,omitempty"`
	Paused          *bool         `json:"paused,omitempty" nullable:"true" doc:"true refuses every purchase until it is false again."`
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

func (s *service) declareBudget() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-budget",
		Usage:   true,
		Keys:    endpoint.WholeKeys,
		Method:  http.MethodGet,
		Path:    "/billing/budget",
		Tag:     "billing",
		Summary: "The agent's own spending guard",
		Doc:     "The limits that the agent has set for itself by PUT /billing/budget, and what it has spent.",
		Scope:   account.BillingRead,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The budget.", Data: exampleBudget}},
	}, func(ctx context.Context, _ *struct{}) (int, budgetReply, error) {
		v, err := s.Wallet.Budget(ctx, endpoint.Caller(ctx))
		return http.StatusOK, toBudget(v), err
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:        "set-budget",
		Method:    http.MethodPut,
		Path:      "/billing/budget",
		Tag:       "billing",
		Summary:   "Change the spending guard",
		Scope:     account.BillingWrite,
		EmptyBody: true,
		Doc:       "Replaces the given fields.",
		OK:        []endpoint.Reply{{Status: http.StatusOK, Doc: "The budget after the change.", Data: exampleBudget}},
		Example: map[string]any{
			"daily_limit":      5,
			"total_limit":      nil,
			"alert_thresholds": []int{50, 90},
			"paused":           false,
		},
	}, func(ctx context.Context, in *struct{ Body budgetBody }) (int, budgetReply, error) {
		b := ledger.SetBudget{AgentID: endpoint.Caller(ctx), Thresholds: in.Body.AlertThresholds.to, Paused: in.Body.Paused}
		var err error
		if b.Daily, err = in.Body.DailyLimit.Limit("daily_limit"); err != nil {
			return 0, budgetReply{}, err
		}
		if b.Total, err = in.Body.TotalLimit.Limit("total_limit"); err != nil {
			return 0, budgetReply{}, err
		}
		v, err := s.Wallet.SetBudget(ctx, b)
		return http.StatusOK, toBudget(v), err
	})
}

func toBudget(v ledger.BudgetView) budgetReply {
	r := budgetReply{
		DailyLimit:      value.Limit{Of: v.Daily},
		TotalLimit:      value.Limit{Of: v.Total},
		AlertThresholds: v.Thresholds,
		Paused:          v.Paused,
		SpentToday:      value.Money(v.SpentToday),
		SpentTotal:      value.Money(v.SpentTotal),
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
		DailyLimit:      value.Limit{Of: &exampleDaily},
		AlertThresholds: []int{50, 90},
		SpentToday:      openapi.USD("0.25"),
		SpentTotal:      openapi.USD("0.25"),
		Currency:        domain.Currency,
	}
)
