package telemetry

import (
	"testing"
	"time"

	"agentproxy/domain/health"
)

func TestAQueuedEventBecomesOneOfHealth(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	got := (&queuedEvent{Type: "http_error", Status: new(403), Latency: new(0), Host: "Shop.Test:443"}).event(at)
	want := health.Event{Type: health.HTTPError, StatusCode: 403, HasLatency: true, Host: "shop.test", At: at}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if bare := (&queuedEvent{Type: "custom"}).event(at); bare.HasLatency || bare.Scored() {
		t.Errorf("%+v has a latency or is scored", bare)
	}
}
