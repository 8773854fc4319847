package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/upstreamproxy"
)

// traceCollector takes spans as a collector does at OTLP's HTTP port.
type traceCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string]*otlp.Span // by id
	raw   bytes.Buffer
}

func collectTraces(t *testing.T) *traceCollector {
	c := &traceCollector{spans: map[string]*otlp.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					c.spans[string(span.SpanId)] = span
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// path returns the names from the root of a trace to a span.
func (c *traceCollector) path(s *otlp.Span) string {
	names := []string{s.Name}
	for s = c.spans[string(s.ParentSpanId)]; s != nil; s = c.spans[string(s.ParentSpanId)] {
		names = append([]string{s.Name}, names...)
	}
	return strings.Join(names, " > ")
}

// paths lists the paths of a trace.
func (c *traceCollector) paths(trace string) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]int{}
	for _, s := range c.spans {
		if fmt.Sprintf("%x", s.TraceId) == trace {
			found[c.path(s)]++
		}
	}
	return found
}

// TestAPurchaseIsOneTrace buys of a seller with a traceparent: the request, its units, their statements, the
// job and the seller's calls are spans of that trace, and no span has a secret.
func TestAPurchaseIsOneTrace(t *testing.T) {
	stores := onEachStore
	if campaign.Rounds(0, 1) == 0 { // the packages' tests have both databases
		stores = func(t *testing.T, test func(t *testing.T, store ...string)) { t.Parallel(); test(t) }
	}
	stores(t, func(t *testing.T, store ...string) {
		collector := collectTraces(t)
		gate := upstreamproxy.New(t, "iproyal", "u421", "secret421x0")
		seller := iproyal.New(t)
		seller.Answers(iproyal.Shape{Polls: 0, Wrapped: true})
		addrs, port := door(t, gate, "127.0.7.3", "127.0.7.4")
		seller.Deliver(addrs, 0, port)
		m := open(t, fmt.Sprintf("embedded: false\nproviders:\n  - {name: royal, kind: iproyal, base_url: %q, per_second: 1000, "+
			"secrets: {key: {env: ROYAL_KEY}}}\nproducts:\n", seller.URL)+addresses("royal", "sta_royal", iproyal.SKU),
			append(store, "ROYAL_KEY="+iproyal.Key, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=100")...)
		key, _ := m.register("traced")
		const trace = "0af7651916cd43dd8448eb211c80319c"
		r, err := m.call(t.Context(), "POST", "/sessions", key, static("sta_royal", 1), "Idempotency-Key", "once", "Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
		if err != nil || r.status != 201 && r.status != 202 {
			t.Fatalf("create: %d %s, %v", r.status, r.body, err)
		}
		var d apiclient.Session
		r.into(t, &d)
		within(t, soon, "activation", func() bool { d = m.session(key, d.SessionID); return d.Status == "active" })
		m.must(200, "GET", "/sessions?label=team:secret-of-the-query", key, "")
		const request = "POST /v1/sessions"
		has := func(paths map[string]int, prefix string) bool {
			for path := range paths {
				if strings.HasPrefix(path, prefix) {
					return true
				}
			}
			return false
		}
		var paths map[string]int
		complete := func() bool {
			paths = collector.paths(trace)
			return has(paths, request+" > unit update > SQL ") && has(paths, request+" > unit update > job drive-orders > provider POST")
		}
		within(t, soon, "the whole trace", complete)
		for path, n := range paths {
			if path != request && !strings.HasPrefix(path, request+" > ") || path == request && n != 1 {
				t.Errorf("%d times %s", n, path)
			}
		}
		within(t, soon, "the list's span", func() bool {
			collector.mu.Lock()
			defer collector.mu.Unlock()
			return strings.Contains(collector.raw.String(), "GET /v1/sessions")
		})
		proxy, err := url.Parse(d.Proxy.FullURL)
		if err != nil {
			t.Fatal(err)
		}
		password, _ := proxy.User.Password()
		collector.mu.Lock()
		defer collector.mu.Unlock()
		raw := collector.raw.String()
		for what, secret := range map[string]string{"the agent's key": key, "the seller's key": iproyal.Key, "the proxy's user name": proxy.User.Username(), "the proxy's password": password,
			"a query": "secret-of-the-query", "an Idempotency-Key": "once", "the seller's password": "secret421x"} {
			if secret == "" || strings.Contains(raw, secret) {
				t.Errorf("a span reveals %s, %q", what, secret)
			}
		}
		if !strings.Contains(raw, "royal") || !strings.Contains(raw, "service.name") {
			t.Error("no span names the provider, or the service")
		}
		m.verify()
	})
}
