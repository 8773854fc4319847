// Package webhooks declares the operations on an agent's webhook, and documents the events that it gets.
package webhooks

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/webhooks"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
)

// deliveryPath is the path of every operation on one delivery.
type deliveryPath struct {
	DeliveryID string `path:"delivery_id" doc:"The delivery, prefix dlv_."`
}

// id returns the delivery's id, or an error if the text cannot be one.
func (p deliveryPath) id() (string, error) {
	if len(p.DeliveryID) > 64 || !strictjson.IsName(p.DeliveryID) {
		return "", webhook.ErrNotFound
	}
	return p.DeliveryID, nil
}

type deliveriesInput struct {
	endpoint.Paging
	Status webhook.Status `query:"status" doc:"Only deliveries in this state."`
}

type webhookReply struct {
	URL            value.MaybeText  `json:"webhook_url" doc:"Where events go; set it with PUT /account/info. null: nowhere."`
	SecretHint     value.MaybeText  `json:"secret_hint" doc:"The last characters of the secret that signs; null: none was ever given out."`
	Status         webhook.State    `json:"status" doc:"disabled: the endpoint answered 410, or failed for five days; set webhook_url again to enable it."`
	DisabledAt     value.MaybeStamp `json:"disabled_at" doc:"null: it is not disabled."`
	LastDeliveryAt value.MaybeStamp `json:"last_delivery_at" doc:"When the endpoint last took an event; null: it has taken none."`
}

type webhookSecretReply struct {
	Secret    string      `json:"webhook_secret" pattern:"^whsec_" doc:"Shown once."`
	RotatedAt value.Stamp `json:"rotated_at" doc:"When the new one took effect."`
}

type webhookTestReply struct {
	EventID string `json:"event_id" pattern:"^evt_[a-z0-9]+$" doc:"The webhook-id of the event that is sent."`
}

type deliveryReply struct {
	DeliveryID     string           `json:"delivery_id" pattern:"^dlv_[a-z0-9]+$" doc:"Names the delivery."`
	EventID        string           `json:"event_id" pattern:"^evt_[a-z0-9]+$" doc:"The webhook-id; the same at every attempt."`
	Type           webhook.Type     `json:"type" doc:"What kind it is."`
	Status         webhook.Status   `json:"status" doc:"Its state."`
	Attempts       int              `json:"attempts" minimum:"0" doc:"How often it was sent."`
	LastStatusCode value.MaybeInt   `json:"last_status_code" doc:"What the endpoint answered last; null: nothing yet, or no answer came."`
	LastError      value.MaybeText  `json:"last_error" doc:"Why the last attempt failed; null: it did not."`
	NextAttemptAt  value.MaybeStamp `json:"next_attempt_at" doc:"null unless pending."`
	CreatedAt      value.Stamp      `json:"created_at" doc:"When it was made."`
}

type deliveriesReply struct {
	Items      []deliveryReply     `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
}

// UseCases are the use cases that the operations on webhooks call.
type UseCases struct{ Webhooks *webhooks.Service }

// service serves the operations on webhooks.
type service struct {
	UseCases
	api *endpoint.API
}

// Declare declares the operations on webhooks and their deliveries.
func Declare(a *endpoint.API, u UseCases) {
	s := &service{u, a}
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "get-webhook", Keys: endpoint.WholeKeys,
		Method:  http.MethodGet,
		Path:    "/account/webhook",
		Tag:     "webhooks",
		Summary: "Where events go, and whether they arrive",
		Doc:     "The URL, whether it is enabled, and the outcome of recent deliveries.",
		Scope:   account.AccountRead,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The webhook.", Data: exampleWebhook}},
	}, s.webhook)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "rotate-webhook-secret",
		Method:  http.MethodPost,
		Path:    "/account/webhook/rotate-secret",
		Tag:     "webhooks",
		Summary: "Replace the secret that signs events",
		Scope:   account.AccountWrite,
		Refuses: endpoint.Refusals(webhook.ErrNoEndpoint),
		Doc: "For 24 hours every event is signed with both secrets, so a receiver can change over without " +
			"losing one.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The new " +
			"secret.", Data: webhookSecretReply{"whsec_…", value.Stamp(openapi.ExampleTime)}}},
	}, s.rotateWebhookSecret)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "test-webhook",
		Stores:  true,
		Method:  http.MethodPost,
		Path:    "/account/webhook/test",
		Tag:     "webhooks",
		Summary: "Send an event of type webhook.test",
		Scope:   account.AccountWrite,
		Refuses: endpoint.Refusals(webhook.ErrNoEndpoint, account.ErrRateLimited),
		Doc:     "10 an hour, each sent once. GET /account/webhook/deliveries has the result.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "It is on its way.",
			Data: webhookTestReply{"evt_" + openapi.ExampleID}}},
	}, s.testWebhook)
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "list-webhook-deliveries", Keys: endpoint.WholeKeys,
		Method:  http.MethodGet,
		Path:    "/account/webhook/deliveries",
		Tag:     "webhooks",
		Summary: "What was sent and what came of it, newest first",
		Scope:   account.AccountRead,
		Doc: "Kept for 30 days. Events of a time when the webhook was disabled are listed as failed; redeliver " +
			"those you need.",
		OK: []endpoint.Reply{
			{
				Status: http.StatusOK,
				Doc:    "A page of deliveries.",
				Data:   deliveriesReply{[]deliveryReply{exampleDelivery}, endpoint.ExamplePagination},
			},
		},
	}, s.listDeliveries)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "redeliver-webhook",
		Method:  http.MethodPost,
		Path:    "/account/webhook/deliveries/{delivery_id}/redeliver",
		Tag:     "webhooks",
		Summary: "Send an event again now",
		Scope:   account.AccountWrite,
		Refuses: endpoint.Refusals(webhook.ErrNotFound, webhook.ErrNoEndpoint),
		Doc: "Not a test event. Whatever its status: it becomes pending and is sent at once, with its " +
			"webhook-id, and " +
			"with the retries of a new event.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The delivery.", Data: examplePending}},
	}, s.redeliver)
	s.api.Document(s.documentWebhooks)
}

func (s *service) webhook(ctx context.Context, _ *struct{}) (int, webhookReply, error) {
	v, err := s.Webhooks.Endpoint(ctx, endpoint.Caller(ctx))
	return http.StatusOK, webhookReply{value.MaybeText(v.URL), value.MaybeText(v.SecretHint), v.State(),
		value.MaybeStamp(v.DisabledAt),
		value.MaybeStamp(v.LastDeliveryAt)}, err
}

func (s *service) rotateWebhookSecret(ctx context.Context, _ *struct{}) (int, webhookSecretReply, error) {
	if err := endpoint.CallIn(ctx).Caller.MayChangeCredentials(); err != nil {
		return 0, webhookSecretReply{}, err
	}
	secret, at, err := s.Webhooks.RotateSecret(ctx, endpoint.Caller(ctx))
	return http.StatusOK, webhookSecretReply{secret, value.Stamp(at)}, err
}

func (s *service) testWebhook(ctx context.Context, _ *struct{}) (int, webhookTestReply, error) {
	id, err := s.Webhooks.Test(ctx, endpoint.Caller(ctx))
	return http.StatusOK, webhookTestReply{id}, err
}

func (s *service) listDeliveries(ctx context.Context, in *deliveriesInput) (int, deliveriesReply, error) {
	list, err := s.Webhooks.Deliveries(ctx, endpoint.Caller(ctx), in.Status, in.Asked())
	if err != nil {
		return 0, deliveriesReply{}, err
	}
	items, pagination := endpoint.PageOf(list, toDelivery)
	return http.StatusOK, deliveriesReply{items, pagination}, nil
}

func (s *service) redeliver(ctx context.Context, in *deliveryPath) (int, deliveryReply, error) {
	id, err := in.id()
	if err != nil {
		return 0, deliveryReply{}, err
	}
	d, err := s.Webhooks.Redeliver(ctx, endpoint.Caller(ctx), id)
	return http.StatusOK, toDelivery(d), err
}

func toDelivery(d webhook.Delivery) deliveryReply {
	code := value.MaybeInt(d.LastStatusCode)
	if code == 0 {
		code = -1
	}
	return deliveryReply{
		DeliveryID:     d.ID,
		EventID:        d.EventID,
		Type:           d.Type,
		Status:         d.Status,
		Attempts:       d.Attempts,
		LastStatusCode: code,
		LastError:      value.MaybeText(d.LastError),
		NextAttemptAt:  value.MaybeStamp(d.NextAttemptAt),
		CreatedAt:      value.Stamp(d.CreatedAt),
	}
}

var (
	exampleWebhook = webhookReply{
		URL:            "https://example.com/hook",
		SecretHint:     "8Dc=",
		Status:         "enabled",
		LastDeliveryAt: value.MaybeStamp(openapi.ExampleTime),
	}
	exampleDelivery = deliveryReply{
		DeliveryID:     "dlv_" + openapi.ExampleID,
		EventID:        "evt_" + openapi.ExampleID,
		Type:           "session.terminated",
		Status:         "delivered",
		Attempts:       1,
		LastStatusCode: 204,
		CreatedAt:      value.Stamp(openapi.ExampleTime),
	}
	examplePending = deliveryReply{
		DeliveryID:     "dlv_" + openapi.ExampleID,
		EventID:        "evt_" + openapi.ExampleID,
		Type:           "session.terminated",
		Status:         "pending",
		Attempts:       9,
		LastStatusCode: 500,
		LastError:      "the endpoint answered 500; answer any 2xx to accept an event",
		NextAttemptAt:  value.MaybeStamp(openapi.ExampleTime),
		CreatedAt:      value.Stamp(openapi.ExampleTime),
	}
)
