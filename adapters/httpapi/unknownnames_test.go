package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// published are the calls that other services have too, whose clients may send fields of their own.
var published = []string{"register", "register-alias", "issue-token", "update-account", "recommend-products", "create-session",
	"rotate-session", "renew-session", "report-event", "report-batch", "create-recharge"}

// bodyObject is an object of a body: what is around it, and its fields.
type bodyObject struct {
	path   string // such as config. or events[0].
	before string
	after  string
	fields []string
	strict bool
}

// objectsIn lists the objects of a schema, of each of its forms.
func objectsIn(schema *openapi3.Schema, path, before, after string) (list []bodyObject) {
	for _, form := range slices.Concat(schema.OneOf, schema.AnyOf) {
		list = append(list, objectsIn(form.Value, path, before, after)...)
	}
	if schema.Items != nil {
		return append(list, objectsIn(schema.Items.Value, strings.TrimSuffix(path, ".")+"[0].", before+"[", "]"+after)...)
	}
	if schema.Properties == nil || schema.AdditionalProperties.Schema != nil {
		return list
	}
	o := bodyObject{path: path, before: before, after: after}
	o.strict = schema.AdditionalProperties.Has != nil && !*schema.AdditionalProperties.Has
	for name, property := range schema.Properties {
		o.fields = append(o.fields, name)
		list = append(list, objectsIn(property.Value, path+name+".", before+`{"`+name+`":`, "}"+after)...)
	}
	slices.Sort(o.fields)
	return append(list, o)
}

// TestUnknownNames sends every operation names that it does not have.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	mine := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).want(201).str("data.session_id")
	order := w.do("POST", "/v1/billing/recharge", `{"amount":10}`, a.as).want(201).str("data.order_id")
	fill := strings.NewReplacer("{session_id}", mine, "{order_id}", order, "{name}", "w1", "{key_id}", "key_x", "{month}", "2026-05",
		"{delivery_id}", "dlv_x", "{token}", "x").Replace
	var found []string
	w.doc.operations(func(method, path string, op *openapi3.Operation) {
		if op.OperationID == "provider-callback" { // of sellers
			return
		}
		path = fill(path)
		// refused sends a name and checks that it is refused, with a hint or without.
		refused := func(path, body, field, hint string) {
			t.Helper()
			r := w.do(method, path, body, a.as)
			issue, _ := r.at("error.details.fields.0.issue").(string)
			if r.status != 400 || r.at("error.details.fields.0.field") != field || !strings.Contains(issue, hint) {
				t.Errorf("%s %s %s: %d %s", method, path, body, r.status, r.body)
			}
		}
		refused(path+"?zz_unknown=1", bodyOf(op), "zz_unknown", "is not a parameter of this call")
		refused(path+"?Zz-Unknown=1", bodyOf(op), "query", "is not a parameter of this call")
		for _, p := range op.Parameters {
			if p.Value.In == "query" {
				refused(path+"?"+p.Value.Name+"x=1", bodyOf(op), p.Value.Name+"x", "did you mean "+p.Value.Name+"?")
			}
		}
		switch {
		case method == "GET":
			return
		case op.RequestBody == nil && op.OperationID != "terminate-session" && op.OperationID != "rotate-secret":
			refused(path, `{"zz_unknown":1}`, "zz_unknown", "is not a field of this body")
			return
		case op.RequestBody == nil:
			refused(path, `{"dry_run":true}`, "dry_run", "in the query")
			return
		}
		if slices.Contains(published, op.OperationID) {
			found = append(found, op.OperationID)
		}
		for _, o := range objectsIn(op.RequestBody.Value.Content["application/json"].Schema.Value, "", "", "") {
			with := func(key string) string { return fmt.Sprintf("%s{%q:1}%s", o.before, key, o.after) }
			for _, name := range o.fields {
				refused(path, with(name+"x"), o.path+name+"x", "did you mean ")
				cased := strings.ToUpper(name[:1]) + name[1:]
				refused(path, with(cased), o.path+cased, "did you mean "+name+"?")
			}
			for _, name := range []string{"dryRun", "idempotency_key", "maximum_cost", "scopes"} {
				refused(path, with(name), o.path+name, "did you mean ")
			}
			if o.strict {
				refused(path, with("zz_unknown"), o.path+"zz_unknown", "is not a field of this body")
				continue
			}
			if !slices.Contains(published, op.OperationID) {
				t.Errorf("%s takes unknown fields in %q", op.OperationID, o.path)
			}
			if r := w.do(method, path, with("zz_unknown"), a.as); strings.Contains(text(r.at("error.details.fields")), "zz_unknown") {
				t.Errorf("%s %s: %s", method, path, r.body)
			}
		}
	})
	if slices.Sort(found); len(found) != len(published) {
		t.Errorf("of the published calls there are %v", found)
	}
}

// TestGuardsInOtherWords covers what callers send to limit a purchase or a key, in words that the API does not have.
func TestGuardsInOtherWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	mine := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).want(201).str("data.session_id")
	nested := func(top, config string) string {
		return `{"type":"dynamic"` + top + `,"config":{"product_no":"dyn_sync"` + config + `}}`
	}
	flat := func(fields string) string { return `{"session_type":"dynamic","product_no":"dyn_sync"` + fields + `}` }
	type sent struct{ method, path, body, field, meant string }
	cases := []sent{
		{"POST", "/v1/sessions", nested("", `,"country_code":"DE"`), "config.country_code", "country, or country_code"},
		{"POST", "/v1/sessions", nested(`,"country":"DE"`, ""), "country", "country_code, or config.country"},
		{"POST", "/v1/sessions", nested(`,"country_code":"DE"`, ""), "country_code", "config.country"},
		{"POST", "/v1/sessions", nested(`,"traffic_gb":0.1`, ""), "traffic_gb", "config.traffic_gb"},
		{"POST", "/v1/sessions", nested(`,"session_type":"dynamic"`, ""), "session_type", "type"},
		{"POST", "/v1/sessions", nested("", `,"rotation_mode":"timed"`), "config.rotation_mode", "rotation, or rotation_mode"},
		{"POST", "/v1/sessions", nested("", `,"trafficGb":0.1`), "config.trafficGb", "traffic_gb"},
		{"POST", "/v1/sessions", nested(`,"dry_run":true`, ""), "dry_run", "?dry_run= in the query"},
		{"POST", "/v1/sessions", nested(`,"idempotency_key":"a"`, ""), "idempotency_key", "the header Idempotency-Key, of the calls that cost money"},
		{"POST", "/v1/sessions", nested(`,"policy":{"denied":[".x.example"]}`, ""), "policy.denied", "deny"},
		{"POST", "/v1/sessions", flat(`,"country":"DE"`), "country", "country_code, or config.country"},
		{"POST", "/v1/sessions", flat(`,"duration_days":30`), "duration_days", "duration, or config.duration_days"},
		{"POST", "/v1/sessions", flat(`,"region":"DE"`), "region", "country_code"},
		{"POST", "/v1/sessions", flat(`,"sticky":true`), "sticky", "rotation_mode"},
		{"PUT", "/v1/billing/budget", `{"dailyLimit":1}`, "dailyLimit", "daily_limit"},
		{"POST", "/v1/account/keys", `{"name":"CI","scopes":["sessions:read"]}`, "scopes", "permissions"},
		{"POST", "/v1/account/keys", `{"name":"CI","scope":["sessions:read"]}`, "scope", "permissions"},
		{"POST", "/v1/account/keys", `{"name":"CI","expires_in":3600}`, "expires_in", "expires_at"},
		{"PUT", "/v1/sessions/" + mine + "/policy", `{"mode":"enforce","denied":[".x.example"]}`, "denied", "deny"},
		{"PATCH", "/v1/sessions/" + mine, `{"allowedIps":["192.0.2.0/24"]}`, "allowedIps", "allowed_ips"},
		{"PATCH", "/v1/sessions/" + mine, `{"auto_top_up":{"below":10}}`, "auto_top_up.below", ""},
		{"POST", "/v1/sessions/" + mine + "/workers", `{"count":1,"maxBytes":5}`, "maxBytes", "max_bytes"},
		{"POST", "/v1/sessions/" + mine + "/traffic", `{"traffic_gb":0.1,"Max_Cost":0.001}`, "Max_Cost", "max_cost"},
		{"POST", "/v1/billing/recharge", `{"amount":10,"network":"ERC20"}`, "network", ""},
		{"POST", "/v1/billing/recharge", `{"amount":10,"currency":"BTC"}`, "currency", ""},
		{"POST", "/v1/account/register", `{"name":"ab","referrer_code":"X"}`, "referrer_code", "referral_code"},
		{"POST", "/v1/sessions/" + mine + "/terminate", `{"dryRun":true}`, "dryRun", "?dry_run= in the query"},
	}
	for _, word := range strings.Fields("maxCost MaxCost Max_Cost max-cost max_price maxPrice maximum_cost max_cost_usd cost_limit budget " +
		"max_spend spending_limit price_limit max_budget") {
		cases = append(cases, sent{"POST", "/v1/sessions", nested(`,"`+word+`":0.01`, ""), word, "max_cost"},
			sent{"POST", "/v1/sessions", nested("", `,"`+word+`":0.01`), "config." + word, "max_cost"})
	}
	for _, word := range strings.Fields("gb traffic size_gb") {
		cases = append(cases, sent{"POST", "/v1/sessions", nested("", `,"`+word+`":0.1`), "config." + word, "traffic_gb"})
	}
	balance := func() any { return w.do("GET", "/v1/billing/balance", "", a.as).want(200).at("data.balance") }
	before := balance()
	for _, c := range cases {
		r := w.do(c.method, c.path, c.body, a.as).refused(400, "INVALID_REQUEST")
		issue := r.str("error.details.fields.0.issue")
		if r.str("error.details.fields.0.field") != c.field || c.meant != "" && !strings.HasSuffix(issue, "did you mean "+c.meant+"?") {
			t.Errorf("%s %s %s: %s", c.method, c.path, c.body, r.body)
		}
	}
	for _, name := range []string{"X-Idempotency-Key", "Idempotency_Key", "IdempotencyKey", "Idempotent-Key", "x-idempotency-token"} {
		w.do("POST", "/v1/sessions", nested("", ""), a.as, header(name, "same")).refused(400, "INVALID_REQUEST")
	}
	if after := balance(); after != before {
		t.Errorf("the balance was %v and is %v", before, after)
	}
	if n := w.do("GET", "/v1/account/keys", "", a.as).want(200).num("data.pagination.total"); n != 1 {
		t.Errorf("%v keys", n)
	}
	w.do("POST", "/v1/sessions", nested(`,"client_ref":"x","country_code":null`, `,"note":{"max_cots":1}`), a.as).want(201)
}

// TestDocumentDescribesParameters covers what a client that is made from the document shows.
func TestDocumentDescribesParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.doc.operations(func(method, path string, op *openapi3.Operation) {
		for _, p := range op.Parameters {
			if p.Value.Description == "" {
				t.Errorf("%s of %s %s has no description", p.Value.Name, method, path)
			}
		}
	})
	var doc struct {
		Paths map[string]map[string]struct{ Responses map[string]json.RawMessage }
	}
	w.must(json.Unmarshal(documentOf(w.server), &doc))
	for path, item := range doc.Paths {
		for method, op := range item {
			if r := string(op.Responses["400"]); r != "" && !strings.HasPrefix(r, `{"$ref":`) {
				t.Errorf("%s %s has a 400 of its own: %s", method, path, r)
			}
		}
	}
}
