package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// TestAnAgentWithToolsAloneBuysConnectsAndRecovers buys, connects curl by the link, diagnoses a target that refuses
// the exit, rotates and ends, by the tools alone.
func TestAnAgentWithToolsAloneBuysConnectsAndRecovers(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	need(t, "curl", err)
	s := shared(t)
	key, _ := s.register("player")
	var mu sync.Mutex
	var blocked string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if from, _, _ := strings.Cut(r.RemoteAddr, ":"); from == blocked || blocked == "" {
			blocked = from // the first exit is refused from then on
			http.Error(w, "not from there", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, strings.Repeat("welcome ", 1000))
	}))
	t.Cleanup(target.Close)
	c := s.toolsByHTTP(requestEra, withKey{"X-API-Key", key})

	before := use(t, c, "get_account", nil).num("balance")
	product := use(t, c, "find_products", map[string]any{"type": "dynamic", "country": "US", "gb": 0.1}).fields["products"].([]any)[0].(map[string]any)
	wish := map[string]any{"product_no": product["product_no"], "traffic_gb": 0.1, "country": "US"}
	wish["max_cost"] = use(t, c, "quote", wish).num("cost")
	wish["purchase_id"] = "play"
	one := map[string]any{"session_id": use(t, c, "create_session", wish).str("session_id")}

	link := use(t, c, "connect", map[string]any{"session_id": one["session_id"], "client": "curl"}).fields["secret"].(map[string]any)["use"].(string)
	fetch := func(script string) string {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script+`; curl -s -o /dev/null -w '%{http_code}' --noproxy '' `+target.URL).CombinedOutput()
		if err != nil {
			t.Fatalf("curl: %v %s", err, out)
		}
		return string(out)
	}
	// The link works once, so its variables are stored for later requests.
	env := t.TempDir() + "/env"
	script, _, _ := strings.Cut(strings.Replace(link, `eval "$(`, `( `, 1), `)"`)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script+` ) > `+env).CombinedOutput(); err != nil {
		t.Fatalf("the link: %v %s", err, out)
	}
	if status := fetch(". " + env); status != "403" {
		t.Fatalf("the target that refuses answers %s", status)
	}
	within(t, soon, "the cause", func() bool {
		causes := use(t, c, "diagnose", map[string]any{"session_id": one["session_id"], "status": 403, "client": "curl"}).fields["causes"].([]any)
		first := causes[0].(map[string]any)
		return first["cause"] == "target_blocks" && first["certainty"] == "certain"
	})
	use(t, c, "report", map[string]any{"session_id": one["session_id"], "events": []any{
		map[string]any{"event_type": "block", "status_code": 403, "target_host": "127.0.0.1"}}})
	if turned := use(t, c, "rotate", map[string]any{"session_id": one["session_id"], "reason": "http_403"}); turned.str("old_exit") == turned.str("new_exit") {
		t.Errorf("rotated %s", turned.text)
	}
	if page := use(t, c, "check_proxy", map[string]any{"session_id": one["session_id"], "url": target.URL}).fields["page"].(map[string]any); page["status"] != 200.0 || page["bytes"] != 8000.0 || page["looks_blocked"] != false {
		t.Errorf("after the rotation the page is %v", page)
	}
	if status := fetch(". " + env); status != "200" {
		t.Errorf("after the rotation the same credentials give %s", status)
	}
	use(t, c, "end_session", one)
	var after toolAnswer
	within(t, soon, "the money of the last lease", func() bool {
		after = use(t, c, "get_account", nil)
		return after.num("held") == 0
	})
	charged := use(t, c, "get_session", one).fields["cost"].(map[string]any)["charged"].(float64)
	if charged <= 0 || fmt.Sprintf("%.6f", before-charged) != fmt.Sprintf("%.6f", after.num("balance")) {
		t.Errorf("before %v, the session cost %v, after %s", before, charged, after.text)
	}
	s.verify()
}
