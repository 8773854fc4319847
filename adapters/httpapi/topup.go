package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// autoTopUpBody is what a session is to buy by itself.
type autoTopUpBody struct {
	_            struct{} `json:"-" additionalProperties:"true"`
	BelowPercent decimal  `json:"below_percent"`
	AddGB        decimal  `json:"add_gb"`
	MaxPerDay    decimal  `json:"max_per_day"`
}

// TransformSchema sets the bounds and the descriptions.
func (autoTopUpBody) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	amend(s, "below_percent", huma.Schema{Minimum: new(1.0), Maximum: new(float64(session.MaxBelowPercent)),
		MultipleOf: new(1.0)}, "Buys when less than this part of the traffic is left, and less than add_gb.")
	amend(s, "add_gb", createBounds["traffic_gb"], "At most 3 decimals, within the product's bounds.")
	amend(s, "max_per_day", huma.Schema{Minimum: new(1.0), Maximum: new(float64(session.MaxTopUpsPerDay)),
		MultipleOf: new(1.0)}, "Purchases on a UTC day.")
	return s
}

// setting returns what the body asks for; nil means no body. A number that is none is out of bounds.
func (b *autoTopUpBody) setting() *session.AutoTopUp {
	if b == nil {
		return nil
	}
	whole := func(d decimal) int { return *cmp.Or(d.integer(), new(0)) }
	return &session.AutoTopUp{BelowPercent: whole(b.BelowPercent), Bytes: *cmp.Or(b.AddGB.bytes(), new(int64)),
		MaxPerDay: whole(b.MaxPerDay)}
}

// maybeAutoTopUp is a field that may be given: nil was not, null turns off.
type maybeAutoTopUp struct{ to **session.AutoTopUp }

// UnmarshalJSON notes that the field was given.
func (m *maybeAutoTopUp) UnmarshalJSON(b []byte) error {
	m.to = new(*session.AutoTopUp)
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	var body autoTopUpBody
	err := json.Unmarshal(b, &body)
	*m.to = body.setting()
	return err
}

// Schema describes the type in the document.
func (maybeAutoTopUp) Schema(r huma.Registry) *huma.Schema {
	body := r.Schema(reflect.TypeFor[autoTopUpBody](), true, "AutoTopUpBody")
	return &huma.Schema{Description: "null turns it off.", AnyOf: []*huma.Schema{body, {Type: "null"}}}
}

// autoTopUpReply is what a session buys by itself, and why it did not when it last tried.
type autoTopUpReply struct {
	BelowPercent int       `json:"below_percent" doc:"Of the traffic."`
	AddGB        gigabytes `json:"add_gb" doc:"Of each purchase."`
	MaxPerDay    int       `json:"max_per_day" doc:"Purchases on a UTC day."`
	Refused      maybeText `json:"refused" doc:"The code for which the last purchase was refused; it is tried every minute. null: it was not."`
}

func toAutoTopUp(t session.TopUps) *autoTopUpReply {
	if t.Auto == (session.AutoTopUp{}) {
		return nil
	}
	return &autoTopUpReply{t.Auto.BelowPercent, gigabytes(t.Auto.Bytes), t.Auto.MaxPerDay, maybeText(t.Failed)}
}

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
func (s *Server) declareTopUp() {
	opResult(s, operation{
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

func (s *Server) addTraffic(ctx context.Context, in *topUpInput) (result[any], error) {
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
