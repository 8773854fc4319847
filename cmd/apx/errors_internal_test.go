package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestErrorsAsJSON checks what a program reads of a refusal, of a wrong use and of a service that is away.
func TestErrorsAsJSON(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = w.Write([]byte(`{"success":false,"data":null,"error":{"code":"INSUFFICIENT_BALANCE","message":"recharge",` +
			`"details":{"required":4,"available":1},"retryable":false},"meta":{}}`))
	}))
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("AGENTPROXY_URL", service.URL)
	t.Setenv("AGENTPROXY_API_KEY", "ak_test")
	for _, c := range []struct {
		args, code string
		status     int
		details    string
	}{
		{"balance --json", "INSUFFICIENT_BALANCE", person, `{"required":4,"available":1}`},
		{"balance --nonsense --json", "MISUSE", misuse, "null"},
		{"recharge many --json", "MISUSE", misuse, "null"},
		{"balance --json", "FAILED", failed, "null"},
	} {
		if c.code == "FAILED" {
			service.Close()
		}
		var out, errs bytes.Buffer
		if status := run(t.Context(), strings.Fields(c.args), streams{nil, &out, &errs}); status != c.status {
			t.Errorf("%s exits with %d, want %d", c.args, status, c.status)
		}
		var got struct{ Error refusal }
		if err := json.Unmarshal(errs.Bytes(), &got); err != nil || got.Error.Code != c.code || got.Error.Message == "" {
			t.Errorf("%s prints %s", c.args, errs.Bytes())
			continue
		}
		var details bytes.Buffer
		if err := json.Compact(&details, got.Error.Details); err != nil || details.String() != c.details || out.Len() > 0 {
			t.Errorf("%s: details %s, output %s", c.args, got.Error.Details, out.Bytes())
		}
	}
}
