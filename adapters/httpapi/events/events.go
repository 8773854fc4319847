// Package events declares the feed of an account's events.
package events

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/adapters/httpapi/webhooks"
	"agentproxy/app/accounts"
	"agentproxy/app/feed"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
)

type feedInput struct {
	After string `query:"after" maxLength:"64" doc:"The next of the answer before; left out: from the oldest event that is kept."`
	Types string `query:"types" maxLength:"1000" doc:"Only these types, with commas between them."`
	Limit int    `query:"limit" minimum:"1" default:"100" doc:"Events of an answer at most. Above 100 is served as 100."`
	Wait  int    `query:"wait" minimum:"0" maximum:"30" default:"0" doc:"Seconds to wait for the first event if there is none."`
}

// AccountEvent is an event of an account, as the feed has it.
type AccountEvent struct {
	EventID   string            `json:"event_id" pattern:"^evt_[a-z0-9]+$" doc:"The webhook-id of the same event."`
	Type      webhook.Type      `json:"type" doc:"What kind it is."`
	Timestamp value.Stamp       `json:"timestamp" doc:"When it happened."`
	Data      map[string]string `json:"data" doc:"Ids and the new status, by the type."`
}

type feedReply struct {
	Items []AccountEvent `json:"items" doc:"Oldest first."`
	Next  string         `json:"next" doc:"What to send as after for what follows, also when items is empty."`
}

// UseCases are the use cases that the operation calls.
type UseCases struct {
	Feed     *feed.Service
	Accounts *accounts.Service
}

// Declare declares the feed.
func Declare(a *endpoint.API, u UseCases) {
	endpoint.Declare(a, endpoint.Operation{
		ID:      "list-events",
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/events",
		Tag:     "account",
		Summary: "What happened to the account, and wait for what happens",
		Scope:   account.AccountRead,
		Refuses: endpoint.Refusals(account.ErrRateLimited),
		Doc: "What webhooks are sent, whether or not one is set, kept 30 days. None is skipped or repeated. With wait " +
			"the answer comes within a second of the first event, on any replica, or empty; 8 calls may wait at a time. " +
			"session.* needs sessions:read, and recharge.*, balance.*, budget.* and trial.* need billing:read: " +
			"without it they are left out. A key with own sees those of its own sessions alone.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The events.", Data: feedReply{Items: []AccountEvent{{
			EventID: "evt_" + openapi.ExampleID, Type: webhook.RechargePaid, Timestamp: value.Stamp(openapi.ExampleTime),
			Data: map[string]string{"order_id": "PAY20260515120000abcdefgh", "status": "paid"}}}, Next: "ev_…"}}},
	}, u.read)
	a.Document(func() { webhooks.DocumentData(a, a.SchemaOf(AccountEvent{}).Ref) })
}

func (u UseCases) read(ctx context.Context, in *feedInput) (int, feedReply, error) {
	c := endpoint.CallIn(ctx)
	types, err := typesOf(in.Types)
	if err != nil {
		return 0, feedReply{}, err
	}
	types = slices.DeleteFunc(types, func(t webhook.Type) bool { return c.Caller.May(webhook.ScopeOf(t)) != nil })
	page, err := u.Feed.Read(ctx, feed.Read{AgentID: c.Caller.AgentID, Key: endpoint.KeyOf(ctx, ""), After: in.After,
		Types: types, Limit: min(in.Limit, feed.MaxItems), Wait: time.Duration(in.Wait) * time.Second, Ends: c.Caller.Ends(),
		Live: func(ctx context.Context) error { return accounts.Live(ctx, u.Accounts, c.Caller) }})
	if err != nil {
		return 0, feedReply{}, err
	}
	r := feedReply{Items: make([]AccountEvent, len(page.Events)), Next: page.Next}
	for i, e := range page.Events {
		r.Items[i] = AccountEvent{e.ID, e.Type, value.Stamp(e.At), e.Data}
	}
	return http.StatusOK, r, nil
}

// typesOf reads a list of types; an empty one is all.
func typesOf(text string) ([]webhook.Type, error) {
	if text == "" {
		return slices.Clone(webhook.Types), nil
	}
	var types []webhook.Type
	for name := range strings.SplitSeq(text, ",") {
		t := webhook.Type(strings.TrimSpace(name))
		if !t.Known() {
			return nil, domain.InvalidField("types", "must be types of events with commas between them, such as recharge.paid")
		}
		types = append(types, t)
	}
	return types, nil
}
