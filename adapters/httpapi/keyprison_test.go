package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"agentproxy/adapters/httpapi"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/storage"
	"agentproxy/test/pg"
)

// Cells are what an operation is to a restricted key.
const (
	free    = "free"    // refused to every restricted key
	whole   = "whole"   // of the account: refused to a key with own
	onOne   = "one"     // of a session: another key's does not exist for a key with own
	spends  = "spends"  // as one, and a restricted key does it with its own alone
	forAny  = "any"     // allowed
	without = "without" // takes no credential
)

// prison is every operation. One that is not in it is refused to restricted keys, and fails this test.
var prison = map[string]string{
	"add-traffic": spends, "change-key": free, "change-session": onOne, "check-session": onOne, "get-session-exit": onOne, "connect-session": onOne,
	"create-key": free, "create-recharge": whole, "create-session": forAny, "delete-key": free, "delete-session": onOne,
	"delete-worker": onOne, "get-account": forAny, "get-balance": forAny, "get-budget": whole, "get-cost-stats": forAny,
	"get-limits": whole, "get-openapi": without, "get-health": without, "get-ip": without, "get-overview": forAny,
	"get-recharge-qr": whole, "get-recharge-status": whole, "get-session": onOne, "get-session-health": onOne,
	"get-session-policy": onOne, "get-session-usage": onOne, "get-statement": forAny, "get-traffic-stats": forAny,
	"get-usage-report": forAny, "get-webhook": whole, "get-worker": onOne, "issue-token": without, "list-keys": free,
	"list-events": forAny, "list-products": forAny, "list-public-products": without, "list-recharges": whole, "list-regions": forAny,
	"list-session-clients": onOne, "list-session-events": onOne, "list-session-hosts": onOne, "list-sessions": forAny,
	"list-transactions": forAny, "list-webhook-deliveries": whole, "list-workers": onOne, "make-workers": onOne,
	"recommend-products": forAny, "redeliver-webhook": free, "refresh-token": forAny, "register": without, "register-alias": without, "provider-callback": without,
	"renew-session": spends, "replace-ip": spends, "report-batch": forAny, "report-event": onOne,
	"reveal-credentials": without, "rotate-key": free, "rotate-password": onOne, "rotate-secret": free,
	"rotate-session": onOne, "rotate-webhook-secret": free, "rotate-worker": onOne, "set-budget": free,
	"set-session-policy": onOne, "terminate-session": onOne, "test-webhook": free, "update-account": free,
}

// keyOf issues a key with limits.
func (w *world) keyOf(a agent, limits string) (agent, string) {
	w.t.Helper()
	r := w.do("POST", "/v1/account/keys", `{"name":"Child",`+limits+`}`, a.as).want(201)
	return agent{a.ID, r.str("data.api_key"), a.Secret}, r.str("data.key_id")
}

func TestARestrictedKeyIsAPrison(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Warden")
	limited, _ := w.keyOf(a, `"budget":{"total":9}`)
	own, _ := w.keyOf(a, `"sessions":"own"`)
	order := w.do("POST", "/v1/billing/recharge", `{"amount":10}`, a.as).want(201).str("data.order_id")
	buy := func(by agent) string {
		return w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":0.1}}`, by.as).
			want(201).str("data.session_id")
	}
	call := func(by func(*http.Request), method, path string, op *openapi3.Operation, session string) *answer {
		path = strings.NewReplacer("{session_id}", session, "{order_id}", order, "{month}", "2026-05", "{key_id}", "key_x",
			"{name}", "w1", "{worker}", "w1", "{delivery_id}", "dlv_x", "{token}", "x").Replace(path)
		return w.do(method, path, bodyOf(op), by)
	}
	limitedToken, ownToken := bearer(w.token(limited)), bearer(w.token(own))
	w.doc.operations(func(method, path string, op *openapi3.Operation) {
		cell := prison[op.OperationID]
		if cell == "" {
			t.Errorf("decide what %s is to restricted keys", op.OperationID)
			cell = free
		}
		refused := func(r *answer, want bool) {
			t.Helper()
			if got := r.status == 403 && r.str("error.code") == "KEY_RESTRICTED"; got != want || r.status == 500 {
				t.Errorf("%s: %d %s, refused is %t", op.OperationID, r.status, r.str("error.code"), got)
			}
		}
		missing := func(r *answer, want bool) {
			t.Helper()
			if got := r.str("error.code") == "SESSION_NOT_FOUND"; got != want || r.status == 500 {
				t.Errorf("%s: %d %s, missing is %t", op.OperationID, r.status, r.str("error.code"), got)
			}
		}
		if cell == without {
			return
		}
		if cell == free || cell == whole || cell == forAny {
			refused(call(limited.as, method, path, op, ""), cell == free)
			refused(call(own.as, method, path, op, ""), cell != forAny)
			refused(call(limitedToken, method, path, op, ""), cell == free)
			refused(call(ownToken, method, path, op, ""), cell != forAny)
			return
		}
		others, mine := buy(a), buy(own)
		refused(call(limited.as, method, path, op, others), cell == spends && op.OperationID == "add-traffic") // the others refuse the type of this session first
		missing(call(own.as, method, path, op, others), true)
		missing(call(ownToken, method, path, op, others), true)
		r := call(own.as, method, path, op, mine)
		missing(r, false)
		refused(r, false)
	})
}

// The tools run the operations of the API, and reveal credentials beside them.
func TestAToolIsNoWayOutOfThePrison(t *testing.T) {
	t.Parallel()
	var others string
	w := newWorld(t, options{tools: func(rw http.ResponseWriter, r *http.Request, a *httpapi.Agent) {
		status, _, _ := a.Run(r.Context(), "GET", "/sessions/"+others, "", nil)
		created, _, _ := a.Run(r.Context(), "POST", "/account/keys", "", []byte(`{"name":"Child"}`))
		_, _, err := a.StoreCredentials(r.Context(), others)
		_, _ = fmt.Fprint(rw, status, created, err)
	}})
	a := w.register("Warden")
	others = w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).want(201).str("data.session_id")
	own, _ := w.keyOf(a, `"sessions":"own"`)
	if got := string(w.do("POST", "/mcp", "x", own.as).body); !strings.HasPrefix(got, "404 403 ") || !strings.Contains(got, "SESSION_NOT_FOUND") {
		t.Errorf("the tools answer %s", got)
	}
	if got := string(w.do("POST", "/mcp", "x", a.as).body); !strings.HasPrefix(got, "200 201 <nil>") {
		t.Errorf("the tools of a free key answer %s", got)
	}
}

func TestTheBudgetOfAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Parent")
	child, id := w.keyOf(a, `"budget":{"total":1.2,"per_purchase":0.9},"products":["dyn_sync","sta_sync"],"max_sessions":2`)
	const dollar = `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":2}}`
	const half = `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`
	r := w.do("POST", "/v1/sessions", dollar, child.as).refused(402, "BUDGET_EXCEEDED")
	if r.str("error.details.scope") != "key" || r.str("error.details.key_id") != id || r.num("error.details.limit") != 0.9 ||
		r.num("error.details.left") != 0.9 || r.num("error.details.spent") != 0 || r.num("error.details.held") != 0 || r.at("error.retryable") != false {
		t.Errorf("details %v", r.at("error"))
	}
	w.do("POST", "/v1/sessions?dry_run=true", dollar, child.as).refused(402, "BUDGET_EXCEEDED")
	s := w.do("POST", "/v1/sessions", half, child.as).want(201)
	session := s.str("data.session_id")
	if s.str("data.bought_by.key_id") != id || s.str("data.bought_by.name") != "Child" {
		t.Errorf("bought by %v", s.at("data.bought_by"))
	}
	// What another key adds counts for the child: 0.50 and 0.50 of 1.20.
	w.do("POST", "/v1/sessions/"+session+"/traffic", `{"traffic_gb":1}`, a.as).want(200)
	r = w.do("POST", "/v1/sessions/"+session+"/traffic", `{"traffic_gb":1}`, a.as).refused(402, "BUDGET_EXCEEDED")
	if r.num("error.details.limit") != 1.2 || r.num("error.details.held") != 1 || r.num("error.details.left") != 0.2 {
		t.Errorf("details %v", r.at("error"))
	}
	if b := w.do("GET", "/v1/billing/balance", "", child.as).want(200); b.num("data.key.left") != 0.2 || b.num("data.key.held") != 1 {
		t.Errorf("the balance is %s", b.body)
	}
	listed := w.do("GET", "/v1/account/keys", "", a.as).want(200)
	if listed.str("data.items.0.key_id") != id || listed.num("data.items.0.held") != 1 || listed.num("data.items.0.left") != 0.2 ||
		listed.num("data.items.0.sessions_live") != 1 || listed.at("data.items.1.left") != nil {
		t.Errorf("the keys are %s", listed.body)
	}
	// What comes back can be spent again.
	w.do("DELETE", "/v1/sessions/"+session, "", a.as).want(200)
	w.do("POST", "/v1/sessions", half, child.as).want(201)
	w.do("POST", "/v1/sessions", half, child.as).want(201)
	if r := w.do("POST", "/v1/sessions", half, child.as).refused(429, "SESSION_LIMIT_REACHED"); r.str("error.details.scope") != "key" {
		t.Errorf("details %v", r.at("error"))
	}
	w.do("PATCH", "/v1/account/keys/"+id, `{"products":["sta_sync"],"max_sessions":null}`, a.as).want(200)
	w.do("POST", "/v1/sessions", half, child.as).refused(403, "KEY_RESTRICTED")
	if n := w.do("GET", "/v1/sessions?key="+id, "", a.as).want(200).num("data.pagination.total"); n != 3 {
		t.Errorf("it bought %v sessions", n)
	}
	w.do("DELETE", "/v1/account/keys/"+id+"?sessions=end", "", a.as).want(200)
	if n := w.do("GET", "/v1/sessions?status=active", "", a.as).want(200).num("data.pagination.total"); n != 0 {
		t.Errorf("%v sessions live on", n)
	}
	w.audit()
}

// What sessions cost is the sum over the keys that bought them, by page and at once.
func TestReportsOfKeysAddUpToTheAccount(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) storage.URL{"sqlite": func(*testing.T) storage.URL { return "" },
		"postgres": func(t *testing.T) storage.URL { return storage.URL(pg.Database(t)) }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{database: database(t)})
			a := w.register("Parent")
			child, id := w.keyOf(a, `"budget":{"total":5}`)
			own, ownID := w.keyOf(a, `"sessions":"own"`)
			const static = `{"type":"static","config":{"product_no":"sta_sync","quantity":1,"duration_days":30,"country":"US"}}`
			for _, by := range []agent{a, child, child, own} {
				w.do("POST", "/v1/sessions", static, by.as).want(201)
			}
			first := w.do("GET", "/v1/sessions?page=4&page_size=1", "", a.as).str("data.items.0.bought_by.key_id")
			sum := 0.0
			for key, want := range map[string]float64{first: 1, id: 2, ownID: 1, "key_none": 0} {
				for _, page := range []string{"", "&page=1&page_size=1"} {
					r := w.do("GET", "/v1/billing/usage-report?key="+key+page, "", a.as).want(200)
					if r.num("data.totals.charged") != want || r.num("data.totals.sessions") != want {
						t.Errorf("%s%s was charged %s", key, page, r.body)
					}
				}
				sum += want
			}
			if all := w.do("GET", "/v1/billing/usage-report", "", a.as).want(200).num("data.totals.charged"); all != sum {
				t.Errorf("the account was charged %v, its keys %v", all, sum)
			}
			for query, want := range map[string]float64{"": 1, "?key=" + ownID: 1, "?key=" + id: 0} {
				if got := w.do("GET", "/v1/billing/usage-report"+query, "", own.as).want(200).num("data.totals.charged"); got != want {
					t.Errorf("with own %q was charged %v, want %v", query, got, want)
				}
			}
			w.audit()
		})
	}
}

func TestTheAccountsOwnBudgetIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Agent")
	w.do("PUT", "/v1/billing/budget", `{"daily_limit":0.1}`, a.as).want(200)
	r := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).refused(402, "BUDGET_EXCEEDED")
	if r.str("error.details.scope") != "account" {
		t.Errorf("details %v", r.at("error"))
	}
}

func TestLimitsOfAKeyAreSetByAFreeKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, other := w.register("Parent"), w.register("Other")
	for _, body := range []string{`"budget":{"total":0}`, `"budget":{"total":-1}`, `"budget":{"daily":2,"total":1}`, `"budget":{"total":1.0000001}`,
		`"budget":{"weekly":1}`, `"budget":5`, `"products":["none"]`, `"products":[]`, `"max_sessions":0`, `"max_sessions":10001`, `"sessions":"some"`} {
		if r := w.do("POST", "/v1/account/keys", `{"name":"Child",`+body+`}`, a.as); r.status != 400 {
			t.Errorf("%s is %d", body, r.status)
		}
	}
	child, id := w.keyOf(a, `"budget":{"total":1}`)
	for _, body := range []string{`{"budget":{"daily":2}}`, `{"max_sessions":0}`, `{"name":"New"}`} {
		w.do("PATCH", "/v1/account/keys/"+id, body, a.as).refused(400, "INVALID_REQUEST")
	}
	first := w.do("GET", "/v1/account/keys?page=2&page_size=1", "", a.as).str("data.items.0.key_id")
	w.do("PATCH", "/v1/account/keys/"+id, `{"max_sessions":3}`, child.as).refused(403, "KEY_RESTRICTED")
	w.do("PATCH", "/v1/account/keys/"+id, `{"max_sessions":3}`, other.as).refused(404, "NOT_FOUND")
	w.do("PATCH", "/v1/account/keys/"+first, `{"max_sessions":3}`, a.as).refused(409, "LAST_KEY")
	if r := w.do("PATCH", "/v1/account/keys/"+id, `{"budget":null,"sessions":"all"}`, a.as).want(200); r.at("data.budget.total") != nil || r.at("data.left") != nil {
		t.Errorf("the key is %s", r.body)
	}
	// Now it is free, and may restrict the first one; then it is the last.
	w.do("PATCH", "/v1/account/keys/"+first, `{"budget":{"total":1}}`, child.as).want(200)
	w.do("GET", "/v1/account/keys", "", a.as).refused(403, "KEY_RESTRICTED")
	w.do("DELETE", "/v1/account/keys/"+id, "", child.as).refused(409, "LAST_KEY")
	w.do("POST", "/v1/account/rotate-key", fmt.Sprintf(`{"api_secret":%q}`, a.Secret), child.as).refused(409, "LAST_KEY")
	w.do("PATCH", "/v1/account/keys/"+first, `{"budget":{"total":null}}`, child.as).want(200)
	w.do("GET", "/v1/account/keys", "", a.as).want(200)
	w.audit()
}

// A first key that was replaced is restricted as the first one is, and buys as it.
func TestAReplacedKeyKeepsItsRestriction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Parent")
	child, _ := w.keyOf(a, `"sessions":null`)
	first := w.do("GET", "/v1/account/keys?page=2&page_size=1", "", a.as).str("data.items.0.key_id")
	w.do("PATCH", "/v1/account/keys/"+first, `{"budget":{"total":0.6}}`, child.as).want(200)
	r := w.do("POST", "/v1/account/rotate-key?children=keep", fmt.Sprintf(`{"api_secret":%q,"grace_seconds":60}`, a.Secret), child.as).want(200)
	fresh := agent{a.ID, r.str("data.api_key"), a.Secret}
	const half = `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`
	if got := w.do("POST", "/v1/sessions", half, a.as).want(201).str("data.bought_by.key_id"); got != first {
		t.Errorf("bought by %s, want %s", got, first)
	}
	w.do("POST", "/v1/sessions", half, a.as).refused(402, "BUDGET_EXCEEDED")
	w.do("POST", "/v1/sessions", half, fresh.as).refused(402, "BUDGET_EXCEEDED")
}

func TestCallsOfOthersDoNotExistForAKeyWithOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Parent")
	own, id := w.keyOf(a, `"sessions":"own"`)
	const half = `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`
	others := w.do("POST", "/v1/sessions", half, a.as, key("k")).want(201).str("data.session_id")
	existing := `{"type":"dynamic","provisioning_mode":"existing","config":{"product_no":"dyn_sync"}}`
	w.do("POST", "/v1/sessions", existing, own.as).refused(409, "PRODUCT_OUT_OF_STOCK")
	mine := w.do("POST", "/v1/sessions", half, own.as, key("k")).want(201)
	if got := mine.str("data.session_id"); got == others || mine.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the call of another key is repeated: %s", got)
	}
	if r := w.do("POST", "/v1/sessions", half, own.as, key("k")).want(201); r.header.Get("Idempotency-Replayed") != "true" {
		t.Error("its own call is not repeated")
	}
	if got := w.do("POST", "/v1/sessions", existing, own.as).want(200).str("data.session_id"); got != mine.str("data.session_id") {
		t.Errorf("it attaches to %s", got)
	}
	for query, want := range map[string]float64{"": 1, "?key=" + id: 1, "?key=key_other": 0} {
		if n := w.do("GET", "/v1/sessions"+query, "", own.as).want(200).num("data.pagination.total"); n != want {
			t.Errorf("%s lists %v sessions", query, n)
		}
	}
	r := w.do("POST", "/v1/telemetry/batch", fmt.Sprintf(`{"events":[{"session_id":%q,"event_type":"success"},{"session_id":%q,"event_type":"success"}]}`,
		others, mine.str("data.session_id")), own.as).want(200)
	if r.str("data.results.0.error.code") != "SESSION_NOT_FOUND" || r.str("data.results.0.session_id") != others || r.num("data.processed") != 1 {
		t.Errorf("the batch answers %s", r.body)
	}
	w.narrowed(a, own, id, mine.str("data.session_id"))
	if b := w.do("GET", "/v1/billing/balance", "", own.as).want(200); b.num("data.held") != 0.5 || b.num("data.trial.balance") != 0 {
		t.Errorf("the balance is %s", b.body)
	}
}

// narrowed checks that what is of the account has the sessions of a key with own alone, whatever key it names, and that
// a free key can ask for the same.
func (w *world) narrowed(a, own agent, id, mine string) {
	w.t.Helper()
	sessionsOf := func(r *answer) string {
		var found []string
		for _, i := range r.at("data.items").([]any) {
			found = append(found, fmt.Sprint(i.(map[string]any)["session_id"]))
		}
		return strings.Join(found, " ")
	}
	month := openapi.ExampleTime.Format("2006-01")
	for path, want := range map[string]string{"/sessions": mine, "/billing/transactions": mine, "/billing/usage-report": "",
		"/billing/statements/" + month: mine} {
		first := w.do("GET", "/v1"+path, "", own.as).want(200)
		if got := sessionsOf(first); got != want {
			w.t.Errorf("%s has %q, want %q", path, got, want)
		}
		if got := sessionsOf(w.do("GET", "/v1"+path+"?key="+id, "", a.as).want(200)); got != want {
			w.t.Errorf("%s with key has %q, want %q", path, got, want)
		}
		if got := sessionsOf(w.do("GET", "/v1"+path+"?key=key_other", "", own.as).want(200)); got != "" {
			w.t.Errorf("%s of another key has %q", path, got)
		}
		list, there := w.do("GET", "/v1"+path+"?by=key", "", own.as).want(200).at("data.by_key").([]any)
		if !there {
			w.t.Errorf("%s has no by_key", path)
		}
		for _, by := range list {
			if got := by.(map[string]any)["key_id"]; got != id {
				w.t.Errorf("%s by key has %v", path, got)
			}
		}
	}
	st := w.do("GET", "/v1/billing/statements/"+month, "", own.as).want(200)
	if st.num("data.opening_balance") != 0 || st.num("data.closing_balance") != -0.5 || st.num("data.by_type.hold") != -0.5 ||
		st.num("data.by_type.trial_grant") != 0 {
		w.t.Errorf("its statement is %s", st.body)
	}
	for _, with := range []*answer{w.do("GET", "/v1/stats/overview", "", own.as), w.do("GET", "/v1/stats/overview?key="+id, "", a.as)} {
		o := with.want(200)
		if o.num("data.total_sessions") != 1 || o.num("data.held") != 0.5 || o.num("data.total_recharged") != 0 {
			w.t.Errorf("the overview is %s", o.body)
		}
	}
	for with, shown := range map[agent]bool{a: true, own: false} {
		if r := w.do("POST", "/v1/sessions?dry_run=true", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, with.as).want(200); (r.at("data.balance_after") != nil) != shown {
			w.t.Errorf("a dry run shows the balance: %t, %s", !shown, r.body)
		}
		if r := w.do("GET", "/v1/billing/transactions?type=hold", "", with.as).want(200); (r.at("data.items.0.balance_after") != nil) != shown {
			w.t.Errorf("the account's balance beside an entry: %s", r.body)
		}
	}
	for query, with := range map[string]agent{"": a, "&status=active": a, "&page_size=1": a, "&key=" + id: own, "&status=failed": a} {
		r, sum := w.do("GET", "/v1/sessions?by=key"+query, "", with.as).want(200), 0.0
		for _, by := range r.at("data.by_key").([]any) {
			sum += by.(map[string]any)["sessions"].(float64)
		}
		if sum != r.num("data.pagination.total") {
			w.t.Errorf("sessions by key%s: %s", query, r.body)
		}
	}
	w.wantFeed("", own, "session.active")
	for _, path := range []string{"/stats/traffic", "/stats/cost"} {
		w.do("GET", "/v1"+path, "", own.as).want(200)
	}
	w.do("GET", "/v1/billing/transactions?by=session", "", a.as).refused(400, "INVALID_REQUEST")
}

// audit proves the books.
func (w *world) audit() {
	w.t.Helper()
	faults, _, err := w.store.Verify(w.t.Context())
	if err != nil || len(faults) > 0 {
		w.t.Errorf("%v, %v", faults, err)
	}
}
