package httpapi

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/strictjson"
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
	Paging
	Status webhook.Status `query:"status"`
}

type webhookReply struct {
	URL            maybeText     `json:"webhook_url" doc:"Where events go; set it with PUT /account/info. null: nowhere."`
	SecretHint     maybeText     `json:"secret_hint" doc:"The last characters of the secret that signs; null: none was ever given out."`
	Status         webhook.State `json:"status" doc:"disabled: the endpoint answered 410, or failed for five days; set webhook_url again to enable it."`
	DisabledAt     maybeStamp    `json:"disabled_at" doc:"null: it is not disabled."`
	LastDeliveryAt maybeStamp    `json:"last_delivery_at" doc:"When the endpoint last took an event; null: it has taken none."`
}

type webhookSecretReply struct {
	Secret    string `json:"webhook_secret" pattern:"^whsec_" doc:"Shown once."`
	RotatedAt stamp  `json:"rotated_at"`
}

type webhookTestReply struct {
	EventID string `json:"event_id" pattern:"^evt_[a-z0-9]+$" doc:"The webhook-id of the event that is sent."`
}

type deliveryReply struct {
	DeliveryID     string         `json:"delivery_id" pattern:"^dlv_[a-z0-9]+$"`
	EventID        string         `json:"event_id" pattern:"^evt_[a-z0-9]+$" doc:"The webhook-id; the same at every attempt."`
	Type           webhook.Type   `json:"type"`
	Status         webhook.Status `json:"status"`
	Attempts       int            `json:"attempts" minimum:"0"`
	LastStatusCode maybeInt       `json:"last_status_code" doc:"What the endpoint answered last; null: nothing yet, or no answer came."`
	LastError      maybeText      `json:"last_error" doc:"Why the last attempt failed; null: it did not."`
	NextAttemptAt  maybeStamp     `json:"next_attempt_at" doc:"null unless pending."`
	CreatedAt      stamp          `json:"created_at"`
}

type deliveriesReply struct {
	Items      []deliveryReply `json:"items"`
	Pagination paginationReply `json:"pagination"`
}

// webhooksUses are the use cases that the operations on webhooks call.
type webhooksUses struct{ Webhooks *webhooks.Service }

// webhooksService serves the operations on webhooks.
type webhooksService struct {
	webhooksUses
	api *API
}

// declareWebhooksFamily declares the operations on webhooks and their deliveries.
func declareWebhooksFamily(a *API, u webhooksUses) {
	s := &webhooksService{u, a}
	op(s.api, operation{
		ID:      "get-webhook",
		Method:  http.MethodGet,
		Path:    "/account/webhook",
		Tag:     "webhooks",
		Summary: "Where events go, and whether they arrive",
		Doc:     "The URL, whether it is enabled, and the outcome of recent deliveries.",
		Scope:   account.AccountRead,
		OK:      []reply{{Status: ok, Doc: "The webhook.", Data: exampleWebhook}},
	}, s.webhook)
	op(s.api, operation{
		ID:      "rotate-webhook-secret",
		Method:  http.MethodPost,
		Path:    "/account/webhook/rotate-secret",
		Tag:     "webhooks",
		Summary: "Replace the secret that signs events",
		Scope:   account.AccountWrite,
		Refuses: refusals(webhook.ErrNoEndpoint),
		Doc: "For 24 hours every event is signed with both secrets, so a receiver can change over without " +
			"losing one.",
		OK: []reply{{Status: ok, Doc: "The new " +
			"secret.", Data: webhookSecretReply{"whsec_…", stamp(exampleTime)}}},
	}, s.rotateWebhookSecret)
	op(s.api, operation{
		ID:      "test-webhook",
		Method:  http.MethodPost,
		Path:    "/account/webhook/test",
		Tag:     "webhooks",
		Summary: "Send an event of type webhook.test",
		Scope:   account.AccountWrite,
		Refuses: refusals(webhook.ErrNoEndpoint, account.ErrRateLimited),
		Doc:     "10 an hour, each sent once. GET /account/webhook/deliveries has the result.",
		OK:      []reply{{Status: ok, Doc: "It is on its way.", Data: webhookTestReply{"evt_" + exampleID}}},
	}, s.testWebhook)
	op(s.api, operation{
		ID:      "list-webhook-deliveries",
		Method:  http.MethodGet,
		Path:    "/account/webhook/deliveries",
		Tag:     "webhooks",
		Summary: "What was sent and what came of it, newest first",
		Scope:   account.AccountRead,
		Doc: "Kept for 30 days. Events of a time when the webhook was disabled are listed as failed; redeliver " +
			"those you need.",
		OK: []reply{
			{
				Status: ok,
				Doc:    "A page of deliveries.",
				Data:   deliveriesReply{[]deliveryReply{exampleDelivery}, examplePagination},
			},
		},
	}, s.listDeliveries)
	op(s.api, operation{
		ID:      "redeliver-webhook",
		Method:  http.MethodPost,
		Path:    "/account/webhook/deliveries/{delivery_id}/redeliver",
		Tag:     "webhooks",
		Summary: "Send an event again now",
		Scope:   account.AccountWrite,
		Refuses: refusals(webhook.ErrNotFound, webhook.ErrNoEndpoint),
		Doc: "Not a test event. Whatever its status: it becomes pending and is sent at once, with its " +
			"webhook-id, and " +
			"with the retries of a new event.",
		OK: []reply{{Status: ok, Doc: "The delivery.", Data: examplePending}},
	}, s.redeliver)
	s.documentWebhooks()
}

func (s *webhooksService) webhook(ctx context.Context, _ *struct{}) (int, webhookReply, error) {
	v, err := s.Webhooks.Endpoint(ctx, caller(ctx))
	return ok, webhookReply{maybeText(v.URL), maybeText(v.SecretHint), v.State(), maybeStamp(v.DisabledAt),
		maybeStamp(v.LastDeliveryAt)}, err
}

func (s *webhooksService) rotateWebhookSecret(ctx context.Context, _ *struct{}) (int, webhookSecretReply, error) {
	secret, at, err := s.Webhooks.RotateSecret(ctx, caller(ctx))
	return ok, webhookSecretReply{secret, stamp(at)}, err
}

func (s *webhooksService) testWebhook(ctx context.Context, _ *struct{}) (int, webhookTestReply, error) {
	id, err := s.Webhooks.Test(ctx, caller(ctx))
	return ok, webhookTestReply{id}, err
}

func (s *webhooksService) listDeliveries(ctx context.Context, in *deliveriesInput) (int, deliveriesReply, error) {
	page, err := in.page(ctx)
	if err != nil {
		return 0, deliveriesReply{}, err
	}
	list, err := s.Webhooks.Deliveries(ctx, caller(ctx), in.Status, page)
	if err != nil {
		return 0, deliveriesReply{}, err
	}
	items, pagination := toItems(list, toDelivery)
	return ok, deliveriesReply{items, pagination}, nil
}

func (s *webhooksService) redeliver(ctx context.Context, in *deliveryPath) (int, deliveryReply, error) {
	id, err := in.id()
	if err != nil {
		return 0, deliveryReply{}, err
	}
	d, err := s.Webhooks.Redeliver(ctx, caller(ctx), id)
	return ok, toDelivery(d), err
}

func toDelivery(d webhook.Delivery) deliveryReply {
	code := maybeInt(d.LastStatusCode)
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
		LastError:      maybeText(d.LastError),
		NextAttemptAt:  maybeStamp(d.NextAttemptAt),
		CreatedAt:      stamp(d.CreatedAt),
	}
}

var (
	exampleWebhook = webhookReply{
		URL:            "https://example.com/hook",
		SecretHint:     "8Dc=",
		Status:         "enabled",
		LastDeliveryAt: maybeStamp(exampleTime),
	}
	exampleDelivery = deliveryReply{
		DeliveryID:     "dlv_" + exampleID,
		EventID:        "evt_" + exampleID,
		Type:           "session.terminated",
		Status:         "delivered",
		Attempts:       1,
		LastStatusCode: 204,
		CreatedAt:      stamp(exampleTime),
	}
	examplePending = deliveryReply{
		DeliveryID:     "dlv_" + exampleID,
		EventID:        "evt_" + exampleID,
		Type:           "session.terminated",
		Status:         "pending",
		Attempts:       9,
		LastStatusCode: 500,
		LastError:      "the endpoint answered 500; answer any 2xx to accept an event",
		NextAttemptAt:  maybeStamp(exampleTime),
		CreatedAt:      stamp(exampleTime),
	}
)
