package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// discard is a ResponseWriter that costs next to nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// run serves one request again and again.
func run(b *testing.B, w *world, a agent, method, path, body string, want int) {
	b.Helper()
	h := w.server.Handler()
	payload := []byte(body)
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("X-API-Key", a.Key)
	rw := &discard{header: http.Header{}}
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime()
	for b.Loop() {
		clear(rw.header)
		r.Body = http.NoBody
		if body != "" {
			r.Body, r.ContentLength = nopCloser{bytes.NewReader(payload)}, int64(len(payload))
		}
		h.ServeHTTP(rw, r)
	}
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N)/1e3, "cpu-µs/op")
	if rw.status != want {
		b.Fatalf("status %d, want %d", rw.status, want)
	}
}

// cpuTime is what this process has used of the processor: on a machine that
// others use too, the figure to compare.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

func benchWorld(b *testing.B) (*world, agent, string) {
	w := newWorld(b, options{perMinute: 10_000_000, trial: 1_000_000_000_000, realTime: true})
	a := w.register("Bench")
	return w, a, w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id")
}

func BenchmarkGetSession(b *testing.B) {
	w, a, id := benchWorld(b)
	run(b, w, a, "GET", "/v1/sessions/"+id, "", 200)
}

// BenchmarkOverhead is a request that the API answers without a use case.
func BenchmarkOverhead(b *testing.B) {
	w, a, _ := benchWorld(b)
	run(b, w, a, "GET", "/v1/sessions/NONE", "", 404)
}

func BenchmarkIP(b *testing.B) {
	w, a, _ := benchWorld(b)
	run(b, w, a, "GET", "/v1/ip", "", 200)
}

// BenchmarkDryRun is a create call without its transaction.
func BenchmarkDryRun(b *testing.B) {
	w, a, _ := benchWorld(b)
	run(b, w, a, "POST", "/v1/sessions?dry_run=true", oneGB, 200)
}

func batchOf(n int, id string) string {
	var s strings.Builder
	s.WriteString(`{"events":[`)
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"session_id":%q,"event_type":"http_error","status_code":%d,"latency_ms":%d,"target_host":"shop.example","error_message":"blocked"}`, id, 400+i%100, i*7)
	}
	s.WriteString("]}")
	return s.String()
}

func BenchmarkTelemetryBatch(b *testing.B) {
	w, a, id := benchWorld(b)
	run(b, w, a, "POST", "/v1/telemetry/batch", batchOf(100, id), 200)
}

// BenchmarkTelemetryHTTP is the same without the use case: no session is known,
// so nothing is stored.
func BenchmarkTelemetryHTTP(b *testing.B) {
	w, a, _ := benchWorld(b)
	run(b, w, a, "POST", "/v1/telemetry/batch", batchOf(100, "sess_unknownunknownunk"), 200)
}
