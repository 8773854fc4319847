package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
)

// answered points apx to a service that answers every call with the same data.
func answered(t *testing.T, data string) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"success":true,"data":` + data + `,"error":null,"meta":{}}`))
	}))
	t.Cleanup(service.Close)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("AGENTPROXY_URL", service.URL)
	t.Setenv("AGENTPROXY_API_KEY", "ak_test")
}

// TestEndStatesItsCost checks the question and the answer about fixed IPs, whose time does not come back.
func TestEndStatesItsCost(t *testing.T) {
	if q := endQuestion("sess_1", apiclient.DryRun{Refunded: "0", Forfeited: "1.5"}); !strings.Contains(q, "sess_1") ||
		!strings.Contains(q, "0 USD comes back") || !strings.Contains(q, "1.5 USD") || !strings.Contains(q, "is not refunded") {
		t.Error(q)
	}
	if q := endQuestion("sess_1", apiclient.DryRun{Refunded: "0.25", Forfeited: "0"}); strings.Contains(q, "is not refunded") {
		t.Error(q)
	}
	answered(t, `{"session_id":"sess_1","status":"terminated","cost":{"charged":2,"forfeited":1.5}}`)
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"end", "sess_1", "--yes"}, streams{nil, &out, &errs}); status != 0 ||
		!strings.HasSuffix(out.String(), "\t2\t1.5\n") {
		t.Errorf("%d: %s%s", status, &out, &errs)
	}
}
