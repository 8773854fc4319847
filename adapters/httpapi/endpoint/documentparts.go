package endpoint

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

const apiDescription = `Sells proxy access to software agents: register, pick a product, create a session, route
traffic through its proxy address, report what came of it, rotate or renew, terminate, recharge.

Every answer but a picture and the text of a reveal link is an envelope: success, data, error, meta. On success error
is null; on an error data is null and error has a code for programs, a message for people, whether it is worth to
retry, and details. A request for a proxy answers 421 MISDIRECTED_REQUEST with where the gateway is. On loopback a
foreign Host answers 421 too, and a request that a browser sends for another site 403 CROSS_SITE_REQUEST; so does a
POST without credential everywhere.

Bodies are JSON objects of at most 1 MiB, of 16 KiB where no credential is needed. An unknown query
parameter is refused, and an unknown field where the schema has additionalProperties false. Elsewhere a field is
ignored, unless it is a near miss of one, a word of the other form or level, or a usual word for another name. Keys
match exactly; one that is given twice, also in another case, is refused. Amounts are US dollars with at most 6
decimals; 1 GB is 1,000,000,000 bytes. Times are RFC 3339 in UTC. Lists
are paged by page and page_size, newest first.

Every answer has meta.request_id in X-Request-ID too. Every answer to a credential has the limit of requests in
X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, and in RateLimit and RateLimit-Policy, as 429 describes
them, unless the account has no limit. A call costs 1, and 1 more for each 25 items beyond the first 25 that it makes,
changes or reads.`

var apiTags = []*huma.Tag{
	{Name: "service", Description: "The service itself. No credential is needed."},
	{Name: "account", Description: "Registration, credentials and the account."},
	{Name: "products", Description: "What is sold, where, and what fits."},
	{Name: "sessions", Description: "Buying, using and ending proxy sessions."},
	{Name: "workers", Description: "Sticky identities of their own inside one session."},
	{Name: "telemetry", Description: "What agents report of their requests, and what follows from it."},
	{Name: "billing", Description: "Balance, movements, recharges in USDT, and the agent's own spending guard."},
	{Name: "webhooks", Description: "What the service sends to agents by itself. See receive-event for its form."},
	{Name: "stats", Description: "Figures over all sessions and over time."},
}

// exampleEnvelope returns an answer as an example shows it.
func (a *API) exampleEnvelope(success bool, data any, e *domain.Error) any {
	errText := []byte("null")
	if e != nil {
		errText = appendError(nil, e)
	}
	out := struct {
		Success bool            `json:"success"`
		Data    json.RawMessage `json:"data"`
		Error   json.RawMessage `json:"error"`
		Meta    metaReply       `json:"meta"`
	}{success, strictjson.Append(nil, data), errText,
		metaReply{"req_" + openapi.ExampleID, value.Stamp(openapi.ExampleTime)}}
	return out
}

// exampleDetails are the details that some refusals always have.
var exampleDetails = map[string]map[string]any{
	"INVALID_REQUEST": {
		"fields": []domain.FieldIssue{{Field: "config.quantity", Issue: "must be a whole number from 1 to 100"}},
	},
	"INSUFFICIENT_BALANCE": {"required": domain.MustMoney("25"), "available": domain.MustMoney("9.75"),
		"currency": domain.Currency},
	"PRICE_MISMATCH":               {"cost": domain.MustMoney("2"), "max_cost": domain.MustMoney("1.5")},
	"AUTH_INSUFFICIENT_PERMISSION": {"required": "sessions:write"},
	"ORDER_LIMIT_REACHED":          {"limit": recharge.MaxOpen},
}

func withExampleDetails(e *domain.Error) *domain.Error {
	c := *e
	c.Details = exampleDetails[e.Code]
	return &c
}

// responseHeaders documents the headers of an answer. Those that every answer has, the id of the request and the
// limit of requests, are in the description of the document: named at each success they would be a tenth of it.
func responseHeaders(o *Operation, status int) map[string]*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	number := &huma.Schema{Type: huma.TypeInteger}
	h := map[string]*huma.Param{}
	limited := status == http.StatusTooManyRequests
	if !o.Open && limited {
		h["X-RateLimit-Limit"] = &huma.Param{
			Description: "Requests a minute, and the burst. Absent when unlimited, like the next two.",
			Schema:      number,
		}
		h["X-RateLimit-Remaining"] = &huma.Param{Description: "Requests that may be sent at once.", Schema: number}
		h["X-RateLimit-Reset"] = &huma.Param{
			Description: "When the whole limit is free again, in Unix seconds.",
			Schema:      number,
		}
		h["RateLimit"] = &huma.Param{Description: "The same in the form of the IETF draft.", Schema: text}
		h["RateLimit-Policy"] = &huma.Param{Description: "The same in the form of the IETF draft.", Schema: text}
	}
	if limited || status == http.StatusServiceUnavailable {
		h["Retry-After"] = &huma.Param{Description: "Seconds to wait, at least 1.", Schema: number}
	}
	if status == http.StatusAccepted {
		h["Location"] = &huma.Param{Description: "Where to poll the session.", Schema: text}
	}
	if o.Idempotent && status < 300 {
		h["Idempotency-Replayed"] = &huma.Param{
			Description: "true when the Idempotency-Key was used before.",
			Schema:      text,
		}
	}
	return h
}
