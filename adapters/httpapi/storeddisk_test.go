package httpapi_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/ratelimit"
	"agentproxy/domain"
	"agentproxy/test/smalldisk"
)

// On a small disk free accounts write by every door, and new ones come, for an hour: they are refused while there is
// room, and who pays buys throughout.
func TestFreeAccountsDoNotFillADisk(t *testing.T) {
	t.Parallel()
	disk := smalldisk.New(t, 160<<20)
	o := crowded(t, 5)
	o.file = filepath.Join(disk.Dir, "ap.db")
	o.stored = ratelimit.StoredConfig{Trial: 50_000_000, Funded: 1_000_000_000}
	w := newWorld(t, o)
	w.doc = nil // the answers are many
	victim := w.register("Victim")
	_, err := ledger.NewWallet(w.store, w.clock, w.ids).Adjust(t.Context(), victim.ID, 1000*domain.Dollar, "paid")
	w.must(err)
	r := rand.New(rand.NewPCG(1, 2))
	refused, bought := 0, 0
	var attackers []agent
	for minute := range 60 {
		if a := w.do("POST", "/v1/account/register", `{"name":"Free"}`); a.status == 201 {
			attackers = append(attackers, agent{a.str("data.agent_id"), a.str("data.api_key"), a.str("data.api_secret")})
		}
		for _, a := range attackers[max(len(attackers)-4, 0):] {
			s := w.do("POST", "/v1/sessions", body("dyn_local"), a.as)
			if s.status == 429 {
				refused++
				continue
			}
			at := "/v1/sessions/" + s.want(201).str("data.session_id")
			w.do("POST", "/v1/telemetry/batch", fullBatch(r, at[len("/v1/sessions/"):]), a.as)
			w.do("POST", at+"/workers", `{"count":1000}`, a.as)
			w.do("PUT", at+"/policy", fmt.Sprintf(`{"deny":["h%d.example"]}`, minute), a.as)
			w.do("POST", at+"/rotate", `{}`, a.as)
			w.do("DELETE", at, "", a.as).want(200)
		}
		at := "/v1/sessions/" + w.do("POST", "/v1/sessions", body("dyn_local"), victim.as).want(201).str("data.session_id")
		w.do("POST", at+"/report-event", `{"event_type":"success"}`, victim.as).want(200)
		w.do("DELETE", at, "", victim.as).want(200)
		bought++
		w.clock.Advance(time.Minute)
	}
	if scarce, err := w.store.Scarce(); !scarce || err != nil || refused == 0 {
		t.Errorf("the disk is scarce: %v, %v; %d calls were refused", scarce, err, refused)
	}
	if free, _, err := w.store.Free(); err != nil || free < 256<<10 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	t.Logf("%d accounts, %d refused, %d bought", len(attackers), refused, bought)
}
