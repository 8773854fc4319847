package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// Calls wait for the database this often at most. No task runs beside them, so what is counted is theirs;
// the fewest of some calls counts, since the pool tests its connections now and then.
func TestCallsWaitForTheDatabaseFewTimes(t *testing.T) {
	t.Parallel()
	l, url := link.New(t, pg.Database(t), 0)
	w := newWorld(t, options{database: storage.URL(url), trial: domain.MustMoney("100000")})
	a := w.register("Traveller")
	const calls = 12
	var ids []string
	for _, c := range []struct {
		what string
		most int64
		call func(n int)
	}{
		{"a purchase with an Idempotency-Key", 3, func(n int) {
			bought := w.do("POST", "/v1/sessions", oneGB, a.as, key(fmt.Sprint("trip", n))).want(201)
			ids = append(ids, bought.str("data.session_id"))
		}},
		{"telemetry of ten sessions", 3, func(int) {
			events := make([]string, 10)
			for i := range events {
				events[i] = fmt.Sprintf(`{"session_id":%q,"event_type":"success"}`, ids[i])
			}
			w.do("POST", "/v1/telemetry/batch", `{"events":[`+strings.Join(events, ",")+`]}`, a.as).want(200)
		}},
		{"a session", 1, func(n int) { w.do("GET", "/v1/sessions/"+ids[n], "", a.as).want(200) }},
		{"a list", 1, func(int) { w.do("GET", "/v1/sessions", "", a.as).want(200) }},
		{"a balance", 1, func(int) { w.do("GET", "/v1/billing/balance", "", a.as).want(200) }},
		{"an end", 3, func(n int) { w.do("POST", "/v1/sessions/"+ids[n]+"/terminate", "", a.as).want(200) }},
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
