package sessions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// autoTopUpBody is what a session is to buy by itself.
type autoTopUpBody struct {
	BelowPercent value.Decimal `json:"below_percent"`
	AddGB        value.Decimal `json:"add_gb"`
	MaxPerDay    value.Decimal `json:"max_per_day"`
	MaxPrice     value.Decimal `json:"max_price_per_gb,omitempty" doc:"The most that auto_top_up pays; default: the session's price."`
}

// TransformSchema sets the bounds and the descriptions.
func (autoTopUpBody) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	openapi.Amend(s, "below_percent", huma.Schema{Minimum: new(1.0), Maximum: new(float64(session.MaxBelowPercent)),
		MultipleOf: new(1.0)}, "Buys when less than this part of the traffic is left, and less than add_gb.")
	openapi.Amend(s, "add_gb", createBounds["traffic_gb"], "At most 3 decimals, within the product's bounds.")
	openapi.Amend(s, "max_per_day", huma.Schema{Minimum: new(1.0), Maximum: new(float64(session.MaxTopUpsPerDay)),
		MultipleOf: new(1.0)}, "Purchases on a UTC day.")
	return s
}

// setting returns what the body asks for; nil means no body. A number that is none is out of bounds.
func (b *autoTopUpBody) setting() *session.AutoTopUp {
	if b == nil {
		return nil
	}
	whole := func(d value.Decimal) int { return *cmp.Or(d.Integer(), new(0)) }
	return &session.AutoTopUp{BelowPercent: whole(b.BelowPercent), Bytes: *cmp.Or(b.AddGB.Bytes(), new(int64)),
		MaxPerDay: whole(b.MaxPerDay), MaxPrice: b.maxPrice()}
}

// maxPrice returns 0 for none, and less for one that is no price.
func (b *autoTopUpBody) maxPrice() domain.Money {
	if !b.MaxPrice.Given() {
		return 0
	}
	if price := b.MaxPrice.Money(); price != nil && *price > 0 {
		return *price
	}
	return -1
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
