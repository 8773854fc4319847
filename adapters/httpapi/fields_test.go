package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// hostile are values that a field may be sent with. None may break anything.
var hostile = []string{
	`null`, `""`, `" "`, `"x"`, `0`, `-1`, `1`, `1.5`, `1e18`, `1e-9`, `99999999999999999999`, `-0`, `true`, `[]`, `{}`, `[1]`, `[[[]]]`, `{"a":{"b":[]}}`,
	`"\u0001"`, `"a\r\nb: c"`, `"\u202eabc"`, `"<script>alert(1)</script>"`, `"=cmd|' /C calc'!A0"`, `"' OR 1=1; --"`, `"../../etc/passwd"`,
	`"{{7*7}}${7*7}"`, `"%s%n%x"`, `"☃💥"`, `"` + strings.Repeat("a", 5_000) + `"`, `"http://127.0.0.1/"`, `"javascript:alert(1)"`,
	`"9999-99-99T99:99:99Z"`, `"NaN"`, `"1"`, `"-1"`,
}

// schemaFields lists the fields of a body with the path to each.
func schemaFields(s *openapi3.Schema, prefix []string) [][]string {
	var out [][]string
	for name, p := range s.Properties {
		at := append(append([]string{}, prefix...), name)
		out = append(out, at)
		inner := p.Value
		if inner.Items != nil {
			inner, at = inner.Items.Value, append(at, "0")
		}
		out = append(out, schemaFields(inner, at)...)
	}
	return out
}

// with returns body with the value at a path replaced.
func with(body any, path []string, value json.RawMessage) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "0" {
		list, _ := body.([]any)
		if len(list) == 0 {
			list = []any{map[string]any{}}
		}
		return []any{with(list[0], path[1:], value)}
	}
	out := map[string]any{}
	if in, ok := body.(map[string]any); ok {
		for k, v := range in {
			out[k] = v
		}
	}
	out[path[0]] = with(out[path[0]], path[1:], value)
	return out
}

func TestHostileFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 8))
	a := w.register("Hostile")
	mine := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_local"}}`, a.as).want(201).str("data.session_id")
	w.doc.operations(func(method, path string, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		var valid any
		w.must(json.Unmarshal([]byte(bodyOf(op)), &valid))
		path = strings.Replace(path, "{session_id}", mine, 1)
		if op.OperationID == "register" || op.OperationID == "register-alias" {
			valid = map[string]any{"name": "Valid"}
		}
		if strings.HasPrefix(op.OperationID, "create-") {
			path += "?dry_run=true"
		}
		schema := op.RequestBody.Value.Content["application/json"].Schema.Value
		for _, field := range schemaFields(schema, nil) {
			for _, value := range hostile {
				body, err := json.Marshal(with(valid, field, json.RawMessage(value)))
				w.must(err)
				r := w.do(method, path, string(body), a.as) // held against the document
				where := fmt.Sprintf("%s %s with %.60s", op.OperationID, strings.Join(field, "."), value)
				if r.status >= 500 {
					t.Errorf("%s: %s", where, r.body)
				}
				aboutBody := r.str("error.code") == "INVALID_REQUEST" && !strings.Contains(r.str("error.message"), "static session can be re")
				if aboutBody && r.at("error.details.fields") == nil {
					t.Errorf("%s: no fields in %s", where, r.body)
				}
				if len(value) > 30 && r.status >= 400 && strings.Contains(string(r.body), strings.Trim(value, `"`)) {
					t.Errorf("%s: the value is repeated", where)
				}
			}
		}
	})
	if got := w.do("GET", "/v1/billing/balance", "", a.as).num("data.balance"); got != 9.5 {
		t.Errorf("the balance is %v, want 9.5", got)
	}
	if log := w.log.take(); strings.Contains(log, "a request failed") || strings.Contains(log, "panicked") {
		t.Errorf("something failed: %.2000s", log)
	}
}

// bound is one value of one field and what it is answered with.
type bound struct {
	body   string
	status int
	field  string // that details name; empty: not looked at
}

func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{trial: 1_000_000_000_000})
	a := w.register("Bounds")
	mine := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).want(201).str("data.session_id")
	static := w.do("POST", "/v1/sessions", `{"type":"static","config":{"product_no":"sta_sync","quantity":1,"duration_days":30,"country":"US"}}`,
		a.as).want(201).str("data.session_id")
	s := strings.Repeat
	nested := func(fields string) string {
		return `{"type":"static","config":{"product_no":"sta_sync",` + fields + `}}`
	}
	dynamic := func(fields string) string {
		return `{"type":"dynamic","config":{"product_no":"dyn_sync"` + fields + `}}`
	}
	create := "/v1/sessions?dry_run=true"
	for _, c := range []struct {
		method, path string
		bounds       []bound
	}{
		{"POST", "/v1/account/register", []bound{
			{`{}`, 400, "name"}, {`{"name":null}`, 400, "name"}, {`{"name":""}`, 400, "name"}, {`{"name":"a"}`, 400, "name"}, {`{"name":"ab"}`, 201, ""},
			{`{"name":7}`, 400, "name"}, {`{"name":"` + s("é", 100) + `  "}`, 201, ""}, {`{"name":"` + s("é", 101) + `"}`, 400, "name"},
			{`{"name":"    "}`, 400, "name"}, {`{"name":"a\nb"}`, 400, "name"}, {`{"name":"a\u202eb"}`, 400, "name"},
			{`{"name":"ab","description":"` + s("é", 500) + `"}`, 201, ""}, {`{"name":"ab","description":"` + s("é", 501) + `"}`, 400, "description"},
			{`{"name":"ab","contact_email":"a@b@c"}`, 400, "contact_email"}, {`{"name":"ab","contact_email":"a@b\r\nc"}`, 400, "contact_email"},
			{`{"name":"ab","contact_email":null,"webhook_url":null,"description":null,"referral_code":null}`, 201, ""},
			{`{"name":"ab","webhook_url":"ftp://x"}`, 400, "webhook_url"}, {`{"name":"ab","webhook_url":"https://u:p@x.example"}`, 400, "webhook_url"},
			{`{"name":"ab","webhook_url":"https://x.example/` + s("a", 2048) + `"}`, 400, "webhook_url"},
			{`{"name":"ab","referral_code":""}`, 201, ""}, {`{"name":"ab","unknown":{"x":[1]},"status":"admin","balance":5}`, 201, ""},
		}},
		{"POST", create, []bound{
			{nested(`"quantity":1,"duration_days":30,"country":"US"`), 200, ""}, {nested(`"quantity":100,"duration_days":90,"country":"us"`), 200, ""},
			{nested(`"duration_days":30,"country":"US"`), 400, "config.quantity"}, {nested(`"quantity":null,"duration_days":30,"country":"US"`), 400, "config.quantity"},
			{nested(`"quantity":0,"duration_days":30,"country":"US"`), 400, "config.quantity"}, {nested(`"quantity":-1,"duration_days":30,"country":"US"`), 400, "config.quantity"},
			{nested(`"quantity":1.5,"duration_days":30,"country":"US"`), 400, "config.quantity"}, {nested(`"quantity":"2","duration_days":30,"country":"US"`), 400, "config.quantity"},
			{nested(`"quantity":101,"duration_days":30,"country":"US"`), 400, "config.quantity"}, {nested(`"quantity":1e9,"duration_days":30,"country":"US"`), 400, "config.quantity"},
			{nested(`"quantity":1e400,"duration_days":30,"country":"US"`), 400, ""}, {nested(`"quantity":2.0,"duration_days":30.0,"country":"US"`), 200, ""},
			{nested(`"quantity":1,"country":"US"`), 400, "config.duration_days"}, {nested(`"quantity":1,"duration_days":31,"country":"US"`), 400, "config.duration_days"},
			{nested(`"quantity":1,"duration_days":"30","country":"US"`), 400, "config.duration_days"}, {nested(`"quantity":1,"duration_days":30`), 400, "config.country"},
			{nested(`"quantity":1,"duration_days":30,"country":"JP"`), 400, "config.country"}, {nested(`"quantity":1,"duration_days":30,"country":"USA"`), 400, "config.country"},
			{nested(`"quantity":1,"duration_days":30,"country":"US","city":"NYC"`), 200, ""}, {nested(`"quantity":1,"duration_days":30,"country":"US","city":"LAX"`), 400, "config.city"},
			{nested(`"quantity":1,"duration_days":30,"country":"US","city":"a b"`), 400, "config.city"}, {nested(`"quantity":1,"duration_days":30,"country":"US","traffic_gb":1`), 400, "config.traffic_gb"},
			{dynamic(``), 200, ""}, {dynamic(`,"traffic_gb":0.1`), 200, ""}, {dynamic(`,"traffic_gb":0.099`), 400, "config.traffic_gb"}, {dynamic(`,"traffic_gb":1000`), 200, ""},
			{dynamic(`,"traffic_gb":1000.001`), 400, "config.traffic_gb"}, {dynamic(`,"traffic_gb":1.2345`), 400, "config.traffic_gb"}, {dynamic(`,"traffic_gb":0`), 400, "config.traffic_gb"},
			{dynamic(`,"traffic_gb":null`), 400, "config.traffic_gb"}, {dynamic(`,"duration_days":30`), 400, "config.duration_days"}, {dynamic(`,"protocol":"ftp"`), 400, "config.protocol"},
			{dynamic(`,"rotation":{"mode":"timed"}`), 400, "config.rotation.interval_seconds"}, {dynamic(`,"rotation":{"mode":"timed","interval_seconds":10}`), 200, ""},
			{dynamic(`,"rotation":{"mode":"timed","interval_seconds":9}`), 400, "config.rotation.interval_seconds"}, {dynamic(`,"rotation":{"mode":"timed","interval_seconds":86401}`), 400, "config.rotation.interval_seconds"},
			{dynamic(`,"rotation":{"mode":"never"}`), 400, "config.rotation.mode"}, {dynamic(`,"rotation":null,"city":null,"country":null,"protocol":null`), 200, ""},
			{dynamic(`,"max_cost":0.5`), 200, ""}, {dynamic(`,"max_cost":0.499999`), 409, ""}, {dynamic(`,"max_cost":0`), 400, "config.max_cost"}, {dynamic(`,"max_cost":0.0000001`), 400, ""},
			{`{"type":"dynamic","max_cost":0.4,"config":{"product_no":"dyn_sync"}}`, 409, ""}, {`{"type":"dynamic","max_cost":1,"config":{"product_no":"dyn_sync","max_cost":2}}`, 400, "config.max_cost"},
			{`{"type":"static","config":{"product_no":"dyn_sync","quantity":1,"duration_days":30,"country":"US"}}`, 400, "config.product_no"},
			{dynamic(`,"provisioning_mode":"steal"`), 400, "config.provisioning_mode"}, {`{"type":"other","config":{"product_no":"dyn_sync"}}`, 400, "type"},
			{`{"config":{"product_no":"dyn_sync"}}`, 400, "type"}, {`{"type":"dynamic","config":{}}`, 400, "config.product_no"}, {`{"type":"dynamic","config":[]}`, 400, "config"},
			{`{"type":"dynamic"}`, 400, "config.product_no"}, {`{}`, 400, "type"}, {`{"type":"dynamic","config":{"product_no":"nope"}}`, 404, ""},
			{`{"session_type":"dynamic","product_no":"dyn_sync","quantity":2.5}`, 200, ""}, {`{"session_type":"dynamic","product_no":"dyn_sync","quantity":0.05}`, 400, ""},
			{`{"session_type":"static","product_no":"sta_sync","quantity":1}`, 200, ""}, {`{"session_type":"static","product_no":"sta_sync"}`, 400, "quantity"},
			{`{"session_type":"static","product_no":"sta_sync","quantity":1,"duration":31}`, 400, "duration"}, {`{"session_type":"dynamic","product_no":"dyn_sync","country_code":"XX"}`, 400, "country_code"},
			{`{"session_type":"dynamic","product_no":"dyn_sync","rotation_mode":"timed","rotation_interval_seconds":60,"config":null}`, 200, ""},
		}},
		{"POST", "/v1/sessions/" + mine + "/rotate", []bound{
			{``, 200, ""}, {`{}`, 200, ""}, {`{"reason":null}`, 200, ""}, {`{"reason":"captcha"}`, 200, ""}, {`{"reason":"bored"}`, 400, "reason"}, {`{"reason":1}`, 400, "reason"}, {`{"reason":""}`, 400, "reason"},
		}},
		{"POST", "/v1/sessions/" + static + "/renew?dry_run=true", []bound{
			{``, 200, ""}, {`{"duration_days":90}`, 200, ""}, {`{"duration_days":31}`, 400, "duration_days"}, {`{"duration_days":null}`, 400, "duration_days"}, {`{"duration_days":"30"}`, 400, "duration_days"},
		}},
		{"POST", "/v1/sessions/" + mine + "/report-event", []bound{
			{``, 400, ""}, {`{}`, 400, "event_type"}, {`{"event_type":"nonsense"}`, 400, "event_type"}, {`{"event_type":"success","status_code":0}`, 200, ""}, {`{"event_type":"success","status_code":599}`, 200, ""},
			{`{"event_type":"success","status_code":600}`, 400, "status_code"}, {`{"event_type":"success","status_code":-1}`, 400, "status_code"}, {`{"event_type":"success","status_code":200.5}`, 400, "status_code"},
			{`{"event_type":"success","status_code":"200"}`, 400, "status_code"}, {`{"event_type":"success","latency_ms":600000}`, 200, ""}, {`{"event_type":"success","latency_ms":600000.5}`, 400, "latency_ms"},
			{`{"event_type":"success","latency_ms":-1}`, 400, "latency_ms"}, {`{"event_type":"success","latency_ms":1e18}`, 400, "latency_ms"}, {`{"event_type":"success","latency_ms":12.75}`, 200, ""},
			{`{"event_type":"success","target_host":"` + s("a", 253) + `"}`, 200, ""}, {`{"event_type":"success","target_host":"` + s("a", 254) + `"}`, 400, "target_host"},
			{`{"event_type":"success","error_message":"` + s("é", 1000) + `"}`, 200, ""}, {`{"event_type":"success","error_message":"` + s("é", 1001) + `"}`, 400, "error_message"},
			{`{"event_type":"success","session_id":"` + mine + `"}`, 200, ""}, {`{"event_type":"success","session_id":"sess_other"}`, 400, "session_id"},
			{`{"event_type":"success","occurred_at":"2026-05-15T12:05:00Z"}`, 200, ""}, {`{"event_type":"success","occurred_at":"2026-05-15T12:05:01Z"}`, 400, "occurred_at"},
			{`{"event_type":"success","occurred_at":"yesterday"}`, 400, "occurred_at"}, {`{"event_type":"success","status_code":null,"latency_ms":null,"occurred_at":null}`, 200, ""},
		}},
		{"POST", "/v1/billing/recharge?dry_run=true", []bound{
			{`{"amount":1}`, 200, ""}, {`{"amount":10000}`, 200, ""}, {`{"amount":10000.00}`, 200, ""}, {`{"amount":1e1}`, 200, ""}, {`{"amount":1E+4}`, 200, ""}, {`{"amount":12.34}`, 200, ""}, {`{"amount":1000e-2}`, 200, ""},
			{``, 400, ""}, {`{}`, 400, "amount"}, {`{"amount":null}`, 400, "amount"}, {`{"amount":"12"}`, 400, "amount"}, {`{"amount":true}`, 400, "amount"}, {`{"amount":[12]}`, 400, "amount"}, {`{"amount":{}}`, 400, "amount"},
			{`{"Amount":12}`, 400, "Amount"}, {`{"amount":0}`, 400, "amount"}, {`{"amount":-0}`, 400, "amount"}, {`{"amount":-12}`, 400, "amount"}, {`{"amount":0.99}`, 400, "amount"}, {`{"amount":0.001}`, 400, "amount"},
			{`{"amount":10000.01}`, 400, "amount"}, {`{"amount":12.345}`, 400, "amount"}, {`{"amount":12.3400001}`, 400, "amount"}, {`{"amount":12.340000000000000000001}`, 400, "amount"}, {`{"amount":12.000001}`, 400, "amount"},
			{`{"amount":0.99999999999999999999999}`, 400, "amount"}, {`{"amount":10000.00000000000000001}`, 400, "amount"}, {`{"amount":1e5}`, 400, "amount"}, {`{"amount":1e-400}`, 400, "amount"}, {`{"amount":1e400}`, 400, "amount"}, {`{"amount":-1e400}`, 400, "amount"},
			{`{"amount":NaN}`, 400, "amount"}, {`{"amount":Infinity}`, 400, "amount"}, {`{"amount":0x10}`, 400, ""}, {`{"amount":012}`, 400, ""}, {`{"amount":12,"amount":13}`, 400, "amount"}, {`{"amount":12,"AMOUNT":13}`, 400, "amount"},
			{`{"amount":12,"payment_method":"usdt"}`, 200, ""}, {`{"amount":12,"payment_method":null}`, 200, ""}, {`{"amount":12,"payment_method":""}`, 400, "payment_method"}, {`{"amount":12,"payment_method":"USDT"}`, 400, "payment_method"},
			{`{"amount":12,"payment_method":"card"}`, 400, "payment_method"}, {`{"amount":12,"payment_method":1}`, 400, "payment_method"}, {`{"amount":12,"payment_method":["usdt"]}`, 400, "payment_method"},
			{`{"amount":12,"status":"paid","received_usdt":12,"wallet_address":"T","order_id":"PAY1","balance":9}`, 200, ""},
		}},
		{"PUT", "/v1/account/info", []bound{
			{``, 200, ""}, {`{"name":null}`, 400, "name"}, {`{"name":"a"}`, 400, "name"}, {`{"name":"Fine"}`, 200, ""}, {`{"contact_email":""}`, 200, ""}, {`{"webhook_url":"x"}`, 400, "webhook_url"},
			{`{"description":null,"balance":1,"status":"disabled","agent_id":"agt_x","rate_limit":0}`, 200, ""},
		}},
		{"PUT", "/v1/billing/budget", []bound{
			{``, 200, ""}, {`{"daily_limit":0}`, 200, ""}, {`{"daily_limit":-0.01}`, 400, "daily_limit"}, {`{"daily_limit":0.0000001}`, 400, "daily_limit"}, {`{"daily_limit":null,"total_limit":null}`, 200, ""},
			{`{"alert_thresholds":[1,100]}`, 200, ""}, {`{"alert_thresholds":[0]}`, 400, "alert_thresholds[0]"}, {`{"alert_thresholds":[101]}`, 400, "alert_thresholds[0]"}, {`{"alert_thresholds":["5"]}`, 400, "alert_thresholds[0]"},
			{`{"paused":"yes"}`, 400, "paused"}, {`{"paused":false}`, 200, ""}, {`{"total_limit":1e30}`, 400, "total_limit"},
		}},
		{"POST", "/v1/products/recommend", []bound{
			{``, 200, ""}, {`{"use_case":"mining"}`, 400, "use_case"}, {`{"target_region":"XX"}`, 400, "target_region"}, {`{"budget":0}`, 400, "budget"}, {`{"budget":0.01}`, 200, ""}, {`{"session_count":0}`, 400, "session_count"},
			{`{"session_count":100}`, 200, ""}, {`{"session_count":101}`, 400, "session_count"}, {`{"session_count":1.5}`, 400, "session_count"}, {`{"require_sticky_ip":1}`, 400, "require_sticky_ip"},
			{`{"use_case":null,"budget":null,"session_count":null,"target_region":null,"require_sticky_ip":null}`, 200, ""},
		}},
		{"POST", "/v1/auth/token", []bound{
			{`{}`, 400, "api_key"}, {`{"api_key":"` + a.Key + `"}`, 400, "api_secret"}, {`{"api_key":null,"api_secret":"x"}`, 400, "api_key"}, {`{"api_key":"` + a.Key + `","api_secret":"sk_wrong"}`, 401, ""},
			{`{"api_key":"` + a.Key + `","api_secret":"` + a.Secret + `","permissions":["root"]}`, 400, "permissions[0]"}, {`{"api_key":"` + a.Key + `","api_secret":"` + a.Secret + `","permissions":null}`, 200, ""},
		}},
	} {
		for _, b := range c.bounds {
			r := w.do(c.method, c.path, b.body, a.as)
			if r.status != b.status {
				t.Errorf("%s %s %.150s: status %d, want %d: %.300s", c.method, c.path, b.body, r.status, b.status, r.body)
			}
			if b.field != "" && !strings.Contains(text(r.at("error.details.fields")), `"field":"`+b.field+`"`) {
				t.Errorf("%s %s %.150s: details do not name %s: %.300s", c.method, c.path, b.body, b.field, r.body)
			}
		}
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Queries")
	lists := []string{"/v1/products", "/v1/public/products", "/v1/sessions", "/v1/billing/transactions"}
	for _, path := range lists {
		for _, bad := range []string{"page=0", "page=-1", "page=abc", "page=1.5", "page=", "page_size=0", "page_size=-5", "page_size=x", "page_size=",
			"page=99999999999999999999", "page=%zz", "page=1;page_size=2", "type=nonsense", "type=%00"} {
			r := w.do("GET", path+"?"+bad, "", a.as).refused(400, "INVALID_REQUEST")
			if strings.Contains(string(r.body), "nonsense") {
				t.Errorf("%s repeats the value", path)
			}
		}
		r := w.do("GET", path+"?page=999999999&page_size=100001", "", a.as).want(200)
		if r.num("data.pagination.page_size") != 100 || r.num("data.pagination.page") != 999999999 || text(r.at("data.items")) != "[]" {
			t.Errorf("%s past the end: %s", path, r.body)
		}
	}
	for path, bad := range map[string][]string{
		"/v1/sessions":             {"status=dead", "type=all", "product_no=%ff", "product_no=a%00b"},
		"/v1/products":             {"country_code=USA", "country_code=1", "available_only=1", "available_only=yes"},
		"/v1/stats/traffic":        {"granularity=week", "start_date=tomorrow", "start_date=", "start_date=2026-05-15&end_date=2026-05-15", "start_date=2026-01-01&end_date=2026-05-01"},
		"/v1/stats/cost":           {"granularity=minute", "end_date=15.05.2026"},
		"/v1/billing/usage-report": {"period=year"},
	} {
		for _, q := range bad {
			w.do("GET", path+"?"+q, "", a.as).refused(400, "INVALID_REQUEST")
		}
	}
	for _, bad := range []string{"dry_run=yes", "dry_run=1", "dry_run=", "dry_run=TRUE"} {
		w.do("POST", "/v1/sessions?"+bad, `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).refused(400, "INVALID_REQUEST")
	}
	if n := w.do("GET", "/v1/stats/traffic?start_date=2026-03-01&end_date=2026-06-01", "", a.as).want(200).at("data.items"); len(n.([]any)) != 92 {
		t.Errorf("%d buckets, want 92", len(n.([]any)))
	}
	w.do("GET", "/v1/products?type=all&country_code=de&available_only=true", "", a.as).want(200)
}
