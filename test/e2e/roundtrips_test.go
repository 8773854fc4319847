package e2e_test

import (
	"fmt"
	"testing"

	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// Calls wait for the database this often at most, whatever else the program does with it: the fewest of some
// calls counts, since its tasks use other connections meanwhile.
func TestCallsWaitForTheDatabaseFewTimes(t *testing.T) {
	t.Parallel()
	l, url := link.New(t, pg.Database(t), 0)
	s := serve(t, append(onPostgres(url), "AGENTPROXY_TRIAL_BALANCE=100000", "AGENTPROXY_TRIAL_DAILY_TOTAL=0")...)
	key, _ := s.register("traveller")
	const calls = 12
	var ids []string
	for _, c := range []struct {
		what string
		most int64
		call func(n int)
	}{
		{"a purchase with an Idempotency-Key", 3, func(n int) {
			var d sessionData
			s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":0.1}}`,
				"Idempotency-Key", fmt.Sprint("trip", n)).into(t, &d)
			ids = append(ids, d.SessionID)
		}},
		{"telemetry of ten sessions", 3, func(int) {
			events := ""
			for i := range 10 {
				events += fmt.Sprintf(`,{"session_id":%q,"event_type":"success"}`, ids[i])
			}
			s.must(200, "POST", "/telemetry/batch", key, `{"events":[`+events[1:]+`]}`)
		}},
		{"a session", 1, func(n int) { s.must(200, "GET", "/sessions/"+ids[n], key, "") }},
		{"a balance", 1, func(int) { s.must(200, "GET", "/billing/balance", key, "") }},
		{"an end", 5, func(n int) { s.must(200, "POST", "/sessions/"+ids[n]+"/terminate", key, "") }},
	} {
		fewest := int64(1 << 20)
		for n := range calls {
			before := l.Asked()
			c.call(n)
			fewest = min(fewest, l.Asked()-before)
		}
		if fewest > c.most {
			t.Errorf("%s waited %d times, want %d at most", c.what, fewest, c.most)
		}
	}
}
