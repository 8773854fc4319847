package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// What gateways report between renewals is in every answer that shows traffic, or money that follows from it.
func TestAnswersHaveWhatGatewaysReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	id := w.do("POST", "/v1/sessions", `{"session_type":"dynamic","product_no":"dyn_sync","traffic_gb":1}`, a.as).want(201).str("data.session_id")
	_, err := w.traffic.Renew(t.Context(), "r", []traffic.LeaseRequest{{SessionID: id, Lease: "l", Want: 64 << 20}})
	w.must(err)
	moved := int64(0)
	for call, want := range map[string]string{
		"GET /sessions":                                    `"used_bytes":%`,
		"GET /sessions/" + id:                              `"used_bytes":%`,
		"GET /sessions/" + id + "/usage":                   `%`,
		"GET /stats/overview":                              ``,
		"GET /stats/traffic":                               `%`,
		"GET /stats/cost":                                  ``,
		"GET /billing/balance":                             ``,
		"GET /billing/usage-report":                        `%`,
		"GET /billing/transactions":                        ``,
		"GET /billing/budget":                              ``,
		"GET /billing/statements/2026-05":                  ``,
		"POST /sessions/" + id + "/terminate?dry_run=true": ``,
	} {
		w.clock.Advance(time.Second)
		moved += 1_000_001
		err := w.traffic.Report(t.Context(), "r", []traffic.ReportPart{{Reports: []traffic.Report{{AgentID: a.ID, SessionID: id, Lease: "l", Down: moved}}}})
		w.must(err)
		method, path, _ := strings.Cut(call, " ")
		r := w.do(method, "/v1"+path, "", a.as).want(200)
		if want = strings.ReplaceAll(want, "%", fmt.Sprint(moved)); !strings.Contains(string(r.body), want) {
			t.Errorf("%s after %d bytes: %s", call, moved, r.body)
		}
		if booked := w.booked(id); booked != moved {
			t.Errorf("%s after %d bytes: %d are booked", call, moved, booked)
		}
	}
	w.do("GET", "/v1/account/info", "", a.as).want(200)
	if booked := w.booked(id); booked != moved {
		t.Errorf("%d are booked", booked)
	}
}

// booked returns the bytes of a session that are booked.
func (w *world) booked(id string) (n int64) {
	w.t.Helper()
	w.must(w.store.View(w.t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		u, err := tx.Traffic().Usage(ctx, id)
		n = u.Used()
		return err
	}))
	return n
}
