package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
)

// page reads one of the admin pages, as the operator.
func (s *service) page(path string) (int, string) {
	s.t.Helper()
	return s.pageAs(path, func(r *http.Request) { r.SetBasicAuth("operator", adminPassword) })
}

// pageAs reads one of the admin pages with what a credential adds to a request.
func (s *service) pageAs(path string, with func(*http.Request)) (int, string) {
	s.t.Helper()
	req, err := http.NewRequest("GET", "http://"+s.admin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	with(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// shows waits until the metrics have every line, and returns them.
func (s *service) shows(lines ...string) (text string) {
	s.t.Helper()
	for _, line := range lines {
		within(s.t, soon, "the metrics show "+line, func() bool {
			_, text = s.page("/metrics")
			return strings.Contains(text, line)
		})
	}
	return text
}

// rare are the series that the alerts and the dashboard have and a quiet service has not, and why.
var rare = map[string]string{
	"agentproxy_unavailable_total":             "nothing was answered 503",
	"agentproxy_database_retries_total":        "no unit was run again",
	"agentproxy_telemetry_queue_lag_seconds":   "there is no NATS",
	"agentproxy_telemetry_queue_calls_total":   "there is no NATS",
	"agentproxy_telemetry_queue_parked_total":  "there is no NATS",
	"agentproxy_telemetry_queue_missing_total": "there is no NATS",
	"agentproxy_provider_lines":                "no seller has a list",
	"agentproxy_upstream_orders_late":          "no seller has orders",
	"agentproxy_upstream_orders_missing":       "no seller has orders",
	"agentproxy_upstream_provider_at_fault":    "no seller has orders",
	"agentproxy_scrape_errors_total":           "every gauge was read",

	"agentproxy_certificate_expires_timestamp_seconds": "there is no certificate",
	"agentproxy_certificate_renewal_timestamp_seconds": "there is no certificate",
	"agentproxy_certificate_files_fault":               "there is no certificate",
}

// deployed checks that the metrics have the series of the alerts and of the dashboard.
func deployed(t *testing.T, metrics string, postgres bool) {
	t.Helper()
	names := map[string]bool{}
	for _, file := range []string{"prometheus/alerts.yml", "grafana/agentproxy.json"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`agentproxy_[a-z_]+`).FindAllString(string(text), -1) {
			names[name] = true
		}
	}
	for name := range names {
		other := postgres && name == "agentproxy_database_free_bytes" ||
			!postgres && (strings.HasPrefix(name, "agentproxy_database_pool_") || strings.HasSuffix(name, "promotions_total"))
		if shown := strings.Contains(metrics, "\n"+name+" ") || strings.Contains(metrics, "\n"+name+"{"); !shown && !other && rare[name] == "" {
			t.Errorf("%s is not shown", name)
		}
	}
}

func TestTheOperatorSeesWhatTheServiceDoes(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ...string) {
		s := serve(t, store...)
		key, agent := s.register("watched")
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
		defer hook.Close()
		hooked, _ := s.listener("hooked", hook.URL)
		s.must(200, "POST", "/account/webhook/test", hooked, "")
		var d apiclient.Session
		s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`).into(t, &d)
		id, proxy := d.SessionID, d.Proxy.HTTPURL
		through(t, proxy, "http://"+s.api+"/v1/ip")
		within(t, soon, "the service is ready", func() bool { status, _ := s.page("/readyz"); return status == 200 })
		probed := "\nwrites ok\n"
		if len(store) > 0 {
			probed = "\nwrites ok: a row was updated in place; whether PostgreSQL's disk has space for new rows is not known\n"
		}
		if _, text := s.page("/readyz"); !strings.Contains(text, probed) {
			t.Errorf("readyz has no %q: %s", probed, text)
		}
		if status, text := s.page("/healthz"); status != 200 {
			t.Errorf("healthz: %d %s", status, text)
		}
		if status, _ := s.page("/debug/pprof/cmdline"); status != 200 {
			t.Errorf("profiles in development: %d", status)
		}
		within(t, soon, "the bytes are counted", func() bool {
			_, text := s.page("/metrics")
			return !strings.Contains(text, `agentproxy_gateway_bytes_total{direction="down"} 0`)
		})
		text := s.shows(
			`agentproxy_http_requests_total{operation="create-session",status="201"} 1`,
			`agentproxy_gateway_requests_total{outcome="ok",protocol="http"} 1`,
			`agentproxy_gateway_bytes_total{direction="up"}`,
			`agentproxy_provider_calls_total{operation="order",provider="embedded",result="ok"} 1`,
			"agentproxy_gateway_tunnels 0", "agentproxy_gateway_lease_waits_total", "agentproxy_ledger_drift 0",
			"agentproxy_payments_drifting 0", "agentproxy_build_info{", "agentproxy_settle_lag_seconds 0",
			`agentproxy_job_seconds_count{kind="deliver",result="ok"}`, `agentproxy_webhook_seconds_count{result="2xx"}`,
			`agentproxy_gateway_exit_dials_total{exit=`,
		)
		if len(store) > 0 {
			s.shows("agentproxy_database_pool_limit 20", "agentproxy_database_pool_used ", "agentproxy_database_pool_waits_total ")
		}
		deployed(t, text, len(store) > 0)
		// The heap of a small service grows by its ballast before it is collected, which is the largest object alive: from
		// what size on it is collected depends on GOGC.
		if _, heap := s.page("/debug/pprof/heap?gc=1&debug=1"); !strings.Contains(heap, "\n1: 8388608 [1: 8388608] @") {
			t.Error("the heap has no ballast of 8 MiB")
		}
		for _, secret := range []string{key, agent, id, "watched"} {
			if strings.Contains(text, secret) {
				t.Errorf("the metrics name %s", secret)
			}
		}
		// What is for the operator is not to be had through the gateway.
		if status, _ := through(t, proxy, "http://"+s.admin+"/metrics"); status != 403 {
			t.Errorf("the admin pages through the gateway: %d", status)
		}
	})
}
