package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// toolPrison has every tool, what it is called with, and what a key with a budget, one with own and one for a product
// that is not asked for are refused with. Of the session in the arguments, DYNAMIC or STATIC, another key is the buyer. A
// tool that is not in it fails the test.
var toolPrison = map[string]struct{ args, limited, own, products string }{
	"get_account":     {`{}`, "", "", ""},
	"find_products":   {`{}`, "", "", ""},
	"quote":           {`{"product_no":"dyn_fast_1"}`, "", "", "KEY_RESTRICTED"},
	"create_session":  {`{"product_no":"dyn_fast_1","traffic_gb":0.1,"max_cost":9,"purchase_id":"PURCHASE"}`, "", "", "KEY_RESTRICTED"},
	"list_sessions":   {`{}`, "", "", ""},
	"get_session":     {`{"session_id":"DYNAMIC"}`, "", "SESSION_NOT_FOUND", ""},
	"connect":         {`{"session_id":"DYNAMIC"}`, "", "SESSION_NOT_FOUND", ""},
	"rotate":          {`{"session_id":"DYNAMIC"}`, "", "SESSION_NOT_FOUND", ""},
	"report":          {`{"session_id":"DYNAMIC","events":[{"event_type":"success"}]}`, "", "SESSION_NOT_FOUND", ""},
	"diagnose":        {`{"session_id":"DYNAMIC"}`, "", "SESSION_NOT_FOUND", ""},
	"check_proxy":     {`{"session_id":"DYNAMIC"}`, "", "SESSION_NOT_FOUND", ""},
	"renew_session":   {`{"session_id":"STATIC","duration_days":30,"max_cost":9,"purchase_id":"PURCHASE"}`, "KEY_RESTRICTED", "SESSION_NOT_FOUND", "KEY_RESTRICTED"},
	"end_session":     {`{"session_id":"DYNAMIC"}`, "", "SESSION_NOT_FOUND", ""},
	"recharge":        {`{"amount":10,"purchase_id":"PURCHASE"}`, "", "KEY_RESTRICTED", ""},
	"wait_for_events": {`{"seconds":20}`, "", "", ""},
}

func TestNoToolIsAWayOutOfThePrison(t *testing.T) {
	t.Parallel()
	s := shared(t, "AGENTPROXY_TRIAL_BALANCE=100")
	key, _ := s.register("warden")
	issue := func(limits string) string { return s.budget(key, limits).APIKey }
	free := s.toolsByHTTP(requestEra, withKey{"X-API-Key", key})
	list, err := free.ListTools(t.Context(), nil)
	ok(t, err)
	static := use(t, free, "create_session", map[string]any{"product_no": "sta_isp_1", "quantity": 1, "duration_days": 30,
		"country": "US", "max_cost": 50, "purchase_id": t.Name()}).
		str("session_id")
	for _, k := range []struct {
		kind, key string
		want      func(tool string) string
	}{
		{"limited", issue(`"budget":{"total":5}`), func(tool string) string { return toolPrison[tool].limited }},
		{"own", issue(`"sessions":"own","budget":{"total":7}`), func(tool string) string { return toolPrison[tool].own }},
		{"products", issue(`"products":["sta_isp_1"]`), func(tool string) string { return toolPrison[tool].products }},
	} {
		t.Run(k.kind, func(t *testing.T) {
			child := s.toolsByHTTP(requestEra, withKey{"X-API-Key", k.key})
			for _, of := range list.Tools {
				cell, decided := toolPrison[of.Name]
				if !decided {
					t.Errorf("decide what %s is to restricted keys", of.Name)
					continue
				}
				dynamic := use(t, free, "create_session", map[string]any{"product_no": "dyn_fast_1", "traffic_gb": 0.1, "max_cost": 9,
					"purchase_id": k.kind + of.Name}).str("session_id")
				var args map[string]any
				text := strings.NewReplacer("DYNAMIC", dynamic, "STATIC", static, "PURCHASE", k.kind).Replace(cell.args)
				ok(t, json.Unmarshal([]byte(text), &args))
				a, err := tool(t.Context(), child, of.Name, args)
				ok(t, err)
				code := a.str("code")
				if want := k.want(of.Name); code != want && (want != "" || code == "KEY_RESTRICTED" || code == "SESSION_NOT_FOUND") {
					t.Errorf("%s: %q, want %q: %s", of.Name, code, want, a.text)
				}
				if k.kind == "own" {
					ownAlone(t, of.Name, a)
				}
			}
		})
	}
	t.Run("expired", func(t *testing.T) {
		end := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)
		gone := issue(fmt.Sprintf(`"expires_at":%q`, end))
		within(t, time.Minute, "the key ends", func() bool {
			status, _ := s.rpc(gone, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			return status == 401
		})
		for name, cell := range toolPrison {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, cell.args)
			if status, text := s.rpc(gone, body); status != 401 {
				t.Errorf("%s of a key that has ended: %d %s", name, status, text)
			}
		}
	})
	s.verify()
}

// ownAlone checks that what a tool answers is of the key's own sessions and its own money.
func ownAlone(t *testing.T, name string, a toolAnswer) {
	t.Helper()
	switch name {
	case "get_account":
		if k, _ := a.fields["key"].(map[string]any); k["left"] == nil || a.num("balance") != k["left"] || a.num("balance") > 7 {
			t.Errorf("the account is %s", a.text)
		}
	case "list_sessions":
		if a.num("total") > 1 {
			t.Errorf("the sessions are %s", a.text)
		}
	case "wait_for_events":
		if items, _ := a.fields["items"].([]any); len(items) != 1 { // of the session that create_session bought
			t.Errorf("the events are %s", a.text)
		}
	}
}
