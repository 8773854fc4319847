package sessions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// autoTopUpBody is what a session is to buy by itself.
type autoTopUpBody struct {
	BelowPercent value.Decimal `json:"below_percent" minimum:"1" maximum:"99" multipleOf:"1" doc:"Buys when less than this part of the traffic is left, and less than add_gb."`
	AddGB        value.Decimal `json:"add_gb" exclusiveMinimum:"0" doc:"At most 3 decimals, within the product's bounds."`
	MaxPerDay    value.Decimal `json:"max_per_day" minimum:"1" maximum:"1000" multipleOf:"1" doc:"Purchases on a UTC day."`
	MaxPrice     value.Decimal `json:"max_price_per_gb,omitempty" doc:"The most that auto_top_up pays; default: the session's price."`
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
