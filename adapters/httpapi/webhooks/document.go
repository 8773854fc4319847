package webhooks

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain/webhook"
)

const webhookDoc = `An event is posted to webhook_url as JSON. It is thin: ids and the new status, never a credential
or a balance; read the rest with the API.

Verify it with a library of [Standard Webhooks](https://www.standardwebhooks.com), or as /docs/webhooks.md shows.

Answer any 2xx within 10 seconds. Anything else, a redirect included, is tried again for about two days. 410 turns the
webhook off, and so do five days of failures; set webhook_url again to turn it on. An event can come twice, and not in
order: webhook-id and timestamp are the same at every attempt.`

// webhookEvent is the body of an event. Its fields are as in events.AccountEvent, so that the document has that as this
// and the id: a schema that no operation reaches is left out by generators of clients, which then lack it.
type webhookEvent struct {
	Type      string            `json:"type" doc:"What kind it is."`
	Timestamp value.Stamp       `json:"timestamp" doc:"When it happened."`
	Data      map[string]string `json:"data" doc:"Ids and the new status, by the type."`
}

// documentWebhooks describes what is sent, beside the operations that are served.
func (s *service) documentWebhooks() {
	types := make([]any, len(webhook.Types))
	for i, t := range webhook.Types {
		types[i] = string(t)
	}
	body := s.api.SchemaOf(webhookEvent{})
	s.api.OpenAPI().Components.Schemas.SchemaFromRef(body.Ref).Properties["type"].Enum = types
	DocumentData(s.api, body.Ref)
	header := func(name, doc string) *huma.Param {
		return &huma.Param{
			Name:        name,
			In:          "header",
			Required:    true,
			Description: doc,
			Schema:      &huma.Schema{Type: huma.TypeString},
		}
	}
	s.api.OpenAPI().Webhooks = map[string]*huma.PathItem{"event": {Post: &huma.Operation{
		OperationID: "receive-event", Tags: []string{"webhooks"}, Security: []map[string][]string{},
		Summary:     "An event, sent to webhook_url",
		Description: webhookDoc,
		Parameters: []*huma.Param{
			header("webhook-id", "The event's id."),
			header("webhook-timestamp", "When this attempt was made, in Unix seconds."),
			header("webhook-signature", "v1, and base64; several with spaces between them while two secrets are valid."),
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{openapi.JSONType: {Schema: body,
			Example: map[string]any{"type": webhook.SessionTerminated, "timestamp": "2026-05-15T12:00:00.000Z",
				"data": map[string]string{
					"session_id":    openapi.ExampleSession,
					"status":        "terminated",
					"status_reason": "agent_request",
				}}}}},
		Responses: map[string]*huma.Response{
			"204": {Description: http.StatusText(http.StatusNoContent) + ": accepted, as by any 2xx."},
		},
	}}}
}
