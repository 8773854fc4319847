package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentproxy/adapters/mcp"
	"agentproxy/adapters/mcp/rest"
	"agentproxy/domain/diagnose"
)

// TestWhatIsSetUpWrongIsNamed calls a tool without a key, with a wrong one, and at what is not the service.
func TestWhatIsSetUpWrongIsNamed(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"success":false,"error":{"code":"AUTH_INVALID_KEY","message":"send a valid API key"}}`))
	}))
	t.Cleanup(refusing.Close)
	site := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	away := httptest.NewServer(nil)
	away.Close()
	for name, c := range map[string]struct {
		url, key, want string
	}{
		"no key":       {refusing.URL, "", "AUTH_INVALID_KEY: this program has no API key"},
		"a wrong key":  {refusing.URL, "ak_wrong", "AUTH_INVALID_KEY: the service at " + refusing.URL},
		"another site": {site.URL, "ak_1", "SERVICE_UNAVAILABLE: what answers at " + site.URL + " is not the API"},
		"nothing":      {away.URL, "ak_1", "SERVICE_UNAVAILABLE: the service at " + away.URL + " cannot be reached"},
	} {
		b, err := rest.New(rest.Config{URL: c.url, Key: c.key, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = mcp.Diagnose(context.Background(), b, "sess_1", diagnose.Observation{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "ak_") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
