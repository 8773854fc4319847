package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/domain/account"
)

// operations calls fn with every documented operation.
func (d *document) operations(fn func(method, path string, op *openapi3.Operation)) {
	paths := d.doc.Paths.Map()
	for _, path := range d.doc.Paths.InMatchingOrder() {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if op := paths[path].GetOperation(method); op != nil {
				fn(method, endpoint.Prefix+path, op)
			}
		}
	}
}

// bodyOf is a body that the operation takes.
func bodyOf(op *openapi3.Operation) string {
	switch op.OperationID {
	case "report-event":
		return `{"event_type":"success"}`
	case "report-batch":
		return `{"events":[{"session_id":"sess_x","event_type":"success"}]}`
	case "create-session":
		return `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`
	case "replace-ip":
		return `{"reason":"other"}`
	case "add-traffic":
		return `{"traffic_gb":0.1}`
	case "create-recharge":
		return `{"amount":10}`
	}
	if op.RequestBody != nil {
		return "{}"
	}
	return ""
}

func needsCredential(op *openapi3.Operation) bool { return op.Security == nil || len(*op.Security) > 0 }

func TestEveryOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, b := w.register("First"), w.register("Second")
	mine := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).want(201).str("data.session_id")
	order := w.do("POST", "/v1/billing/recharge", `{"amount":10}`, a.as).want(201).str("data.order_id")
	fill := func(path, id string) string {
		return strings.NewReplacer("{session_id}", id, "{order_id}", order).Replace(path)
	}

	t.Run("without a credential is 401, unless it needs none", func(t *testing.T) {
		w.doc.operations(func(method, path string, op *openapi3.Operation) {
			r := w.do(method, fill(path, mine), bodyOf(op))
			if needsCredential(op) {
				r.refused(401, "AUTH_INVALID_KEY")
				if r.header.Get("X-RateLimit-Limit") != "" || r.header.Get("Www-Authenticate") == "" {
					t.Errorf("%s %s: headers %v", method, path, r.header)
				}
			} else if r.status == 401 {
				t.Errorf("%s %s: 401", method, path)
			}
		})
	})

	t.Run("with a token that lacks the permission is 403", func(t *testing.T) {
		w.doc.operations(func(method, path string, op *openapi3.Operation) {
			scope, _ := op.Extensions["x-required-permission"].(string)
			if !needsCredential(op) || op.OperationID == "refresh-token" {
				return
			}
			if scope == "" {
				t.Errorf("%s needs no permission", op.OperationID)
			}
			others := slices.DeleteFunc(slices.Clone(account.Scopes), func(s account.Scope) bool { return string(s) == scope })
			w.do(method, fill(path, mine), bodyOf(op), bearer(w.token(a, others...))).refused(403, "AUTH_INSUFFICIENT_PERMISSION")
		})
	})

	t.Run("answers another agent's session like one that does not exist", func(t *testing.T) {
		w.doc.operations(func(method, path string, op *openapi3.Operation) {
			if !strings.Contains(path, "{session_id}") {
				return
			}
			foreign := w.do(method, fill(path, mine), bodyOf(op), b.as).refused(404, "SESSION_NOT_FOUND")
			for _, id := range []string{"sess_zzzzzzzzzzzzzzzzzzzz", "x", "sess_%00", "..%5c", "sess_'%20OR%201", strings.Repeat("a", 300)} {
				unknown := w.do(method, fill(path, id), bodyOf(op), b.as).refused(404, "SESSION_NOT_FOUND")
				if got, want := text(unknown.at("error")), text(foreign.at("error")); got != want {
					t.Errorf("%s %s: %s, another agent's %s", method, path, got, want)
				}
			}
		})
		w.do("GET", "/v1/sessions", "", b.as).want(200)
		r := w.do("POST", "/v1/telemetry/batch", `{"events":[{"session_id":"`+mine+`","event_type":"block"}]}`, b.as).want(200)
		if r.num("data.rejected") != 1 || r.str("data.results.0.error.code") != "SESSION_NOT_FOUND" {
			t.Errorf("a batch for another agent's session: %s", r.body)
		}
		if got := w.do("GET", "/v1/sessions/"+mine, "", a.as).want(200).str("data.status"); got != "active" {
			t.Errorf("the session is %s", got)
		}
	})

	t.Run("answers another agent's order like one that does not exist", func(t *testing.T) {
		w.doc.operations(func(method, path string, op *openapi3.Operation) {
			if !strings.Contains(path, "{order_id}") {
				return
			}
			at := func(id string) string { return strings.Replace(path, "{order_id}", id, 1) }
			w.do(method, at(order), bodyOf(op), a.as).want(200)
			foreign := w.do(method, at(order), bodyOf(op), b.as).refused(404, "ORDER_NOT_FOUND")
			for _, id := range []string{"PAY20260515120000zzzzzzzz", strings.ToLower(order), order + "x", order[:len(order)-1], "x", "PAY%00", "..%5c", "PAY'%20OR%201", "PAY%25",
				"%20" + order, order + "%0a", strings.Repeat("a", 300), "sess_x"} {
				unknown := w.do(method, at(id), bodyOf(op), a.as).refused(404, "ORDER_NOT_FOUND")
				if got, want := text(unknown.at("error")), text(foreign.at("error")); got != want {
					t.Errorf("%s %s: %s, another agent's %s", method, path, got, want)
				}
			}
		})
		if n := w.do("GET", "/v1/billing/recharge", "", b.as).want(200).num("data.pagination.total"); n != 0 {
			t.Errorf("another agent sees %v orders", n)
		}
	})

	t.Run("answers another agent's delivery like one that does not exist", func(t *testing.T) {
		for _, who := range []agent{a, b} {
			w.do("PUT", "/v1/account/info", `{"webhook_url":"https://example.com/hook"}`, who.as).want(200)
		}
		w.do("POST", "/v1/account/rotate-secret", "", a.as).want(200)
		id := w.do("GET", "/v1/account/webhook/deliveries", "", a.as).want(200).str("data.items.0.delivery_id")
		at := func(id string) string { return "/v1/account/webhook/deliveries/" + id + "/redeliver" }
		w.do("POST", at(id), "", a.as).want(200)
		foreign := w.do("POST", at(id), "", b.as).refused(404, "NOT_FOUND")
		for _, other := range []string{"dlv_zzzzzzzzzzzzzzzzzzzz", "x", id + "%00", strings.Repeat("a", 300)} {
			unknown := w.do("POST", at(other), "", b.as).refused(404, "NOT_FOUND")
			if got, want := text(unknown.at("error")), text(foreign.at("error")); got != want {
				t.Errorf("%s: %s, another agent's %s", other, got, want)
			}
		}
		if n := w.do("GET", "/v1/account/webhook/deliveries", "", b.as).want(200).num("data.pagination.total"); n != 0 {
			t.Errorf("another agent sees %v deliveries", n)
		}
	})

	t.Run("with another method is 405 and lists those it takes", func(t *testing.T) {
		paths := w.doc.doc.Paths.Map()
		w.doc.operations(func(_, path string, _ *openapi3.Operation) {
			item := paths[strings.TrimPrefix(path, endpoint.Prefix)]
			for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"} {
				if item.GetOperation(known(method)) != nil && method != "BREW" || method == "HEAD" && item.Get != nil && !strings.HasPrefix(path, "/v1/reveal/") {
					continue
				}
				r := w.do(method, fill(path, mine), "", a.as)
				if r.refused(405, "METHOD_NOT_ALLOWED"); r.header.Get("Allow") == "" {
					t.Errorf("%s %s: no Allow", method, path)
				}
				for m := range item.Operations() {
					if !strings.Contains(r.header.Get("Allow"), m) {
						t.Errorf("%s %s: Allow %s lacks %s", method, path, r.header.Get("Allow"), m)
					}
				}
			}
		})
	})

	t.Run("that does not exist is 404, with or without a credential", func(t *testing.T) {
		for _, path := range []string{"/v1/", "/v1/nothing", "//v1//sessions", "/v1/sessions/", "/v1/products/", "/v2/sessions",
			"/v1/sessions/" + mine + "/", "/v1/sessions/" + mine + "/nothing", "/v1/billing/recharge/", "/v1/billing/recharge/" + order,
			"/v1/billing/recharge/" + order + "/pay", "/v1/account/webhook/", "/v1/account/webhook/deliveries/dlv_x", "/V1/health",
			"/v1/sessions/%2e%2e/%2e%2e/account/info", "/v1/./health", "/v1/health%00"} {
			w.do("GET", path, "").refused(404, "NOT_FOUND")
			w.do("GET", path, "", a.as).refused(404, "NOT_FOUND")
			w.do("POST", path, "{}", header("X-API-Key", "ak_wrong")).refused(404, "NOT_FOUND")
		}
		for _, request := range []string{"GET /v1/billing/recharge//status", "GET /v1/sessions//usage", "POST /v1/sessions//rotate"} {
			method, path, _ := strings.Cut(request, " ")
			w.do(method, path, "").refused(404, "NOT_FOUND")
			w.do(method, path, "", a.as).refused(404, "NOT_FOUND")
		}
	})
}

func known(method string) string {
	if method == "BREW" {
		return http.MethodGet
	}
	return method
}

func text(v any) string { b, _ := json.Marshal(v); return string(b) }
