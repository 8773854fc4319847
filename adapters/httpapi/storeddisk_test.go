package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/app/ledger"
	"agentproxy/app/throttle"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/exitlog"
	"agentproxy/ports"
	"agentproxy/test/campaign"
	"agentproxy/test/pg"
	"agentproxy/test/smalldisk"
)

// On a small disk free accounts write by every door, and strangers open accounts, for an hour: they are refused while
// there is room, and who pays buys throughout. The disk of the campaign has 400 MiB on both databases.
func TestFreeAccountsDoNotFillADisk(t *testing.T) {
	t.Parallel()
	size := campaign.Rounds(160, 400) << 20
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		o := crowded(t, 5)
		o.file = filepath.Join(smalldisk.New(t, size).Dir, "ap.db")
		fillForAnHour(t, o)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		if campaign.Rounds(0, 1) == 0 {
			t.Skip("only in the campaign")
		}
		server := pg.StartSmall(t, size)
		o := crowded(t, 5)
		o.database, o.capacity = storage.URL(server.Database(t)), int64(size)/2
		fillForAnHour(t, o)
	})
}

// stranger is a free account that writes by every door.
type stranger struct {
	*world
	agent
	random  *rand.Rand
	refused *int
}

func fillForAnHour(t *testing.T, o options) {
	o.stored = throttle.StoredConfig{Trial: 50_000_000, Funded: 1_000_000_000}
	o.limits = throttle.Config{NetworkRegistrations: 60, AllRegistrations: 600}
	w := newWorld(t, o)
	w.doc = nil // the answers are many
	victim := w.register("Victim")
	_, err := ledger.NewWallet(w.store, w.clock, w.ids).Adjust(t.Context(), victim.ID, 1000*domain.Dollar, "paid")
	w.must(err)
	random := rand.New(rand.NewPCG(1, 2))
	refused, accounts := 0, 0
	var attackers []stranger
	for minute := range 60 {
		for range 60 { // one network's most
			a := w.do("POST", "/v1/account/register", fmt.Sprintf(`{"name":"Free","description":%q,"webhook_url":%q}`,
				strings.Repeat("é", 500), "https://closed.example/"+strings.Repeat("x", 2000)))
			if a.status != 201 {
				refused++
				break
			}
			if accounts++; len(attackers) <= minute {
				attackers = append(attackers, stranger{w, agent{a.str("data.agent_id"), a.str("data.api_key"), a.str("data.api_secret")},
					random, &refused})
			}
		}
		for _, a := range attackers[max(len(attackers)-4, 0):] {
			a.write(minute)
		}
		at := "/v1/sessions/" + w.do("POST", "/v1/sessions", body("dyn_local"), victim.as).want(201).str("data.session_id")
		w.do("POST", at+"/report-event", `{"event_type":"success"}`, victim.as).want(200)
		w.do("DELETE", at, "", victim.as).want(200)
		w.clock.Advance(time.Minute)
	}
	if scarce, err := w.store.Scarce(); !scarce || err != nil || refused == 0 {
		t.Errorf("the disk is scarce: %v, %v; %d calls were refused", scarce, err, refused)
	}
	free, _, err := w.store.Free()
	if err != nil || o.file != "" && free < 256<<10 || w.store.DiskFull() {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	t.Logf("%d accounts, %d refused, 60 of 60 bought, %d bytes free", accounts, refused, free)
}

// write writes what the account may in a minute by reports, rules, workers, webhooks, sessions and connections.
func (a stranger) write(minute int) {
	a.t.Helper()
	a.do("PUT", "/v1/account/info", `{"webhook_url":"https://closed.example/hook"}`, a.as)
	for range 3 {
		deny := make([]string, 100)
		for i := range deny {
			deny[i] = fmt.Sprintf("h%d-%d-%s.example", minute, i, strings.Repeat("x", 40))
		}
		rules, _ := json.Marshal(map[string]any{"deny": deny})
		s := a.do("POST", "/v1/sessions", strings.Replace(body("dyn_local"), "{", `{"policy":`+string(rules)+",", 1), a.as)
		if s.status == 429 {
			*a.refused++
			break
		}
		at := "/v1/sessions/" + s.want(201).str("data.session_id")
		for range 2 {
			a.do("POST", "/v1/telemetry/batch", fullBatch(a.random, at[len("/v1/sessions/"):]), a.as)
		}
		a.do("POST", at+"/workers", `{"count":1000}`, a.as)
		for range campaign.Rounds(3, 20) {
			a.do("POST", at+"/rotate", `{}`, a.as)
		}
		a.do("DELETE", at, "", a.as).want(200)
	}
	if a.stored.Over(a.ID, account.TrialTier) { // as the gateway asks
		*a.refused++
		return
	}
	batch := make([]exitlog.Connection, 600) // ten a second
	for i := range batch {
		at := a.clock.Now()
		batch[i] = exitlog.Connection{Replica: "one", Number: a.random.Uint64() >> 1, Agent: a.ID, Session: "sess_" + a.ID, Opened: at, Seen: at,
			Client: netip.MustParseAddrPort("192.0.2.1:1"), Exit: netip.MustParseAddrPort("127.0.0.2:1"), Closed: at, End: exitlog.Finished,
			Target: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, byte(a.random.IntN(256)), byte(a.random.IntN(256))}), 443)}
	}
	a.must(a.counting.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.ExitLog().Append(ctx, "one", a.clock.Now(), batch)
	}))
}
