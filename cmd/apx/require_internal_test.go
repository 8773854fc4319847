package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTheRuleOfASessionCanBeEnded checks that a rotation without a condition differs from one that names no rule.
func TestTheRuleOfASessionCanBeEnded(t *testing.T) {
	answered(t, `{"session_id":"sess_1","rotation":{"count":1}}`)
	var sent string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/rotate") {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
		}
		_, _ = w.Write([]byte(`{"success":true,"data":{"session_id":"sess_1","rotation":{"count":1}},"error":null,"meta":{}}`))
	}))
	t.Cleanup(service.Close)
	t.Setenv("AGENTPROXY_URL", service.URL)
	for args, want := range map[string]string{"": `{}`, " --require-none": `{"require":{"network_types":[]}}`,
		" --require-agreed": `{"require":{"agreed":true}}`} {
		var out, errs bytes.Buffer
		status := run(t.Context(), strings.Fields("rotate sess_1"+args), streams{nil, &out, &errs})
		if status != 0 || sent != want {
			t.Errorf("rotate%s: %d, sent %s, want %s\n%s", args, status, sent, want, &errs)
		}
	}
	sent = ""
	var out, errs bytes.Buffer
	status := run(t.Context(), strings.Fields("rotate sess_1 --require-none --require-agreed"), streams{nil, &out, &errs})
	if status != misuse || sent != "" {
		t.Errorf("with another condition: %d, sent %s", status, sent)
	}
}
