package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// keyBudgetBody is the budget of a key.
type keyBudgetBody struct {
	Total       value.Decimal `json:"total,omitempty" nullable:"true" doc:"Ever."`
	Daily       value.Decimal `json:"daily,omitempty" nullable:"true" doc:"Of a UTC day."`
	PerPurchase value.Decimal `json:"per_purchase,omitempty" nullable:"true" doc:"Of one purchase, renewal or top-up."`
}

// maybeKeyBudget is a field that may be given: nil was not, null is no budget.
type maybeKeyBudget struct{ to *keyBudgetBody }

// UnmarshalJSON notes that the field was given.
func (m *maybeKeyBudget) UnmarshalJSON(b []byte) error {
	m.to = &keyBudgetBody{"null", "null", "null"}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	*m.to = keyBudgetBody{}
	return json.Unmarshal(b, m.to)
}

// Schema describes the type in the document.
func (maybeKeyBudget) Schema(r huma.Registry) *huma.Schema {
	body := r.Schema(reflect.TypeFor[keyBudgetBody](), true, "KeyBudgetBody")
	return &huma.Schema{Description: "In US dollars above 0; null: no limit.", AnyOf: []*huma.Schema{body, {Type: "null"}}}
}

// maybe is a field that may be given: nil was not, and null is the zero value.
type maybe[T any] struct{ to *T }

// UnmarshalJSON notes that the field was given.
func (m *maybe[T]) UnmarshalJSON(b []byte) error {
	m.to = new(T)
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	return json.Unmarshal(b, m.to)
}

type (
	maybeProducts struct{ maybe[[]string] }
	maybeSessions struct{ maybe[int] }
	maybeReach    struct{ maybe[account.Reach] }
)

// Schema describes the type in the document.
func (maybeProducts) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Nullable: true, MinItems: new(1), MaxItems: new(100),
		Items: &huma.Schema{Type: huma.TypeString}, Description: "The only products that it buys; null: all."}
}

// Schema describes the type in the document.
func (maybeSessions) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Nullable: true, Minimum: new(1.0),
		Maximum: new(float64(account.MaxSessionsOfKey)), Description: "Live ones at a time; null: no limit."}
}

// Schema describes the type in the document.
func (maybeReach) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "own: sessions of other keys do not exist for it.",
		AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[account.Reach](), true, "KeyReach"), {Type: "null"}}}
}

// LimitsBody is what restricts a key. What is not given stays.
type LimitsBody struct {
	Budget      maybeKeyBudget `json:"budget,omitempty"`
	Products    maybeProducts  `json:"products,omitempty"`
	MaxSessions maybeSessions  `json:"max_sessions,omitempty"`
	Sessions    maybeReach     `json:"sessions,omitempty"`
}

// change returns what the body asks for.
func (b LimitsBody) change(keyID string) (accounts.KeyChange, error) {
	c := accounts.KeyChange{ID: keyID, Products: b.Products.to, MaxSessions: b.MaxSessions.to}
	if b.Sessions.to != nil {
		if reach := *b.Sessions.to; reach != "" && !slices.Contains(account.Reaches, reach) {
			return c, domain.InvalidField("sessions", "must be all or own")
		}
		c.Own = new(*b.Sessions.to == account.OwnSessions)
	}
	if b.Budget.to == nil {
		return c, nil
	}
	for _, f := range []struct {
		name string
		of   value.Decimal
		to   ***domain.Money
	}{{"total", b.Budget.to.Total, &c.Total}, {"daily", b.Budget.to.Daily, &c.Daily},
		{"per_purchase", b.Budget.to.PerPurchase, &c.PerPurchase}} {
		limit, err := f.of.Limit("budget." + f.name)
		if err != nil {
			return c, err
		}
		*f.to = limit
	}
	return c, nil
}

// KeyLimits is what restricts a key, and what it spent.
type KeyLimits struct {
	Budget      keyBudgetReply `json:"budget" doc:"What it may spend."`
	Products    *[]string      `json:"products" nullable:"true" doc:"The only products that it buys; null: all."`
	MaxSessions value.MaybeInt `json:"max_sessions" doc:"Live ones at a time; null: no limit."`
	Sessions    account.Reach  `json:"sessions" doc:"own: those of other keys do not exist for it."`
	Spent       value.Money    `json:"spent" doc:"Charged for the sessions that it bought, less what was refunded."`
	Held        value.Money    `json:"held" doc:"What they hold."`
	Left        value.Limit    `json:"left" doc:"The least that any limit leaves for one purchase; null without one."`
	Live        int            `json:"sessions_live" doc:"Live sessions that it bought."`
}

type keyBudgetReply struct {
	Total       value.Limit `json:"total" doc:"Ever; null: none."`
	Daily       value.Limit `json:"daily" doc:"Of a UTC day; null: none."`
	PerPurchase value.Limit `json:"per_purchase" doc:"Of one purchase; null: none."`
}

func toKeyLimits(k accounts.KeyView) KeyLimits {
	l := k.Limits
	r := KeyLimits{Budget: keyBudgetReply{value.Limit{Of: l.Budget.Total}, value.Limit{Of: l.Budget.Daily},
		value.Limit{Of: l.Budget.PerPurchase}}, MaxSessions: -1, Sessions: l.Reach(), Spent: value.Money(k.Spent),
		Held: value.Money(k.Held), Live: k.Live}
	if l.Products != nil {
		r.Products = &l.Products
	}
	if l.MaxSessions > 0 {
		r.MaxSessions = value.MaybeInt(l.MaxSessions)
	}
	if k.Limited {
		r.Left.Of = &k.Left
	}
	return r
}

type changeKeyInput struct {
	KeyID string `path:"key_id" doc:"The key, prefix key_."`
	Body  LimitsBody
}

// declareKeyChange declares what changes the limits of a key.
func (s *service) declareKeyChange() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "change-key", Method: http.MethodPatch, Path: "/account/keys/{key_id}", Tag: "account",
		Summary: "Change what restricts an API key", Scope: account.AccountWrite, EmptyBody: true,
		Doc: "A field that is left out stays; null removes a limit. A restricted key spends on sessions that it bought " +
			"alone and changes nothing of the account. In force at once, on other replicas within a second.",
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The key after the change.", Data: exampleKey}},
		Refuses: endpoint.Refusals(account.ErrKeyNotFound, account.ErrLastKey),
		Example: map[string]any{"budget": map[string]any{"total": 10, "daily": 2}, "max_sessions": 5},
	}, s.changeKey)
}

func (s *service) changeKey(ctx context.Context, in *changeKeyInput) (int, keyReply, error) {
	if len(in.KeyID) > 64 || !strictjson.IsName(in.KeyID) {
		return 0, keyReply{}, account.ErrKeyNotFound
	}
	change, err := in.Body.change(in.KeyID)
	if err != nil {
		return 0, keyReply{}, err
	}
	c := endpoint.CallIn(ctx).Caller
	if err := s.Accounts.Keys.Change(ctx, c, change); err != nil {
		return 0, keyReply{}, err
	}
	list, err := s.Accounts.Keys.Views(ctx, c.AgentID)
	if err != nil {
		return 0, keyReply{}, err
	}
	for _, k := range list {
		if k.ID == in.KeyID {
			return http.StatusOK, toKey(k), nil
		}
	}
	return 0, keyReply{}, account.ErrKeyNotFound
}

var exampleLimited = KeyLimits{
	Budget: keyBudgetReply{Total: value.Limit{Of: new(domain.MustMoney("5"))}}, MaxSessions: -1,
	Sessions: account.OwnSessions, Spent: openapi.USD("0.4"), Held: openapi.USD("0.8"),
	Left: value.Limit{Of: new(domain.MustMoney("3.8"))}, Live: 2,
}
