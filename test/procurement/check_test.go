package procurement_test

import (
	"bytes"
	"context"
	"os"
	"strings"

	"agentproxy/domain/billing"
	"agentproxy/test/apptest"
)

// sellerRefs returns the references of the orders that a provider lists at the moment.
func (w *world) sellerRefs(provider string) map[string]bool {
	refs := map[string]bool{}
	switch provider {
	case poolName:
		for _, k := range w.pool.Keys() {
			refs[k.ID] = true
		}
	case royalName:
		for _, o := range w.royal.Orders() {
			refs[itoa(o.ID)] = true
		}
		for _, u := range w.royal.SubUsers() {
			refs[u.Hash] = true
		}
	case cheapName:
		for _, o := range w.cheap.Orders() {
			refs[o.ID] = true
		}
	case ispName, residentName:
		for _, ref := range w.ps.Refs() {
			if strings.Contains(ref, "_") == (provider == ispName) {
				refs[ref] = true
			}
		}
	}
	return refs
}

// intents returns the orders of the service that the sellers have sold. A renewal of
// several addresses is sold once for each of them.
func (w *world) intents() map[string]bool {
	sold := map[string]bool{}
	for _, s := range w.servers() {
		for _, key := range s.Intents() {
			id, _, _ := strings.Cut(key, "/")
			sold[id] = true
		}
	}
	return sold
}

// check compares the sellers' orders with the service's, and those with the sessions of
// agents.
func (w *world) check() {
	w.t.Helper()
	w.purchases()
	w.renewals()
	w.money()
	w.keysOnce()
	w.silence()
}

// purchases checks that the sales and the confirmed orders match one to one, that open
// orders are those of live sessions, and that closed ones are gone at the seller where
// they can be cancelled.
func (w *world) purchases() {
	w.t.Helper()
	sold := w.intents()
	known := map[string]map[string]bool{}
	confirmed, closed, live := 0, 0, 0
	for _, o := range w.rows(`SELECT o.id, o.provider, o.ref, o.status, o.closed_at, s.status, s.provider, o.type, o.state, o.session_id
		FROM upstream_orders o JOIN sessions s ON s.id = o.session_id WHERE o.kind = 'purchase' ORDER BY o.seq`) {
		id, provider, ref := o[0], o[1], o[2]
		if sold[id] != (o[3] == "confirmed") {
			w.t.Errorf("order %v: sold %v", o, sold[id])
		}
		if o[3] != "confirmed" {
			continue
		}
		confirmed++
		if known[provider] == nil {
			known[provider] = map[string]bool{}
		}
		if ref == "" || known[provider][ref] {
			w.t.Errorf("order %v: its ref is another's", o)
		}
		known[provider][ref] = true
		gone := w.vanished[provider+" "+ref]
		there := w.sellerRefs(provider)[ref]
		cancels := o[7] == "dynamic"
		switch {
		case o[4] == "0":
			live++
			if o[5] != "active" || o[6] != provider || !there {
				w.t.Errorf("order %v: it is not closed, and there: %v", o, there)
			}
		case there == (cancels || gone):
			closed++
			w.t.Errorf("order %v: it is closed, and there: %v", o, there)
		default:
			closed++
		}
	}
	orphans := 0
	for _, provider := range []string{poolName, royalName, ispName, residentName, cheapName} {
		for ref := range w.sellerRefs(provider) {
			if !known[provider][ref] {
				orphans++
				w.t.Errorf("%s sold %s, and it is not stored", provider, ref)
			}
		}
	}
	sessions := len(w.rows(`SELECT id FROM sessions WHERE status = 'active' AND provider <> ?`, gatewayName))
	if live != sessions {
		w.t.Errorf("%d orders are live, and %d sessions", live, sessions)
	}
	for _, s := range w.rows(`SELECT id FROM sessions s WHERE status = 'active' AND provider <> ? AND 1 <> (SELECT COUNT(*) FROM upstream_orders o
		WHERE o.session_id = s.id AND o.kind = 'purchase' AND o.status = 'confirmed' AND o.closed_at = 0 AND o.provider = s.provider)`, gatewayName) {
		w.t.Errorf("session %v has not one order that is live", s)
	}
	if n := w.ps.SelfRenewing(); n > 0 {
		w.t.Errorf("%d addresses would renew themselves at our cost", n)
	}
	w.t.Logf("sold %d orders = %d live sessions + %d closed + %d orphans", confirmed, live, closed, orphans)
	w.count("sold", confirmed)
	w.count("live", live)
	w.count("closed", closed)
	w.count("orphans", orphans)
	w.count("order adopted", len(w.rows(`SELECT 1 FROM upstream_orders WHERE decided_at - sent_at > 0 AND sent_at > 0 AND status = 'confirmed' AND kind = 'purchase'`)))
	w.count("order proven absent", len(w.rows(`SELECT 1 FROM upstream_orders WHERE reason = 'the provider does not have it'`)))
	w.count("other source tried", len(w.rows(`SELECT session_id FROM upstream_orders WHERE kind = 'purchase' GROUP BY session_id HAVING COUNT(*) > 1`)))
	w.count("provider lost", len(w.rows(`SELECT 1 FROM sessions WHERE reason = 'provider_lost'`)))
}

// renewals checks that exactly the renewals that a seller sold are confirmed. One of unknown
// outcome is refused when the seller takes the addresses away: its agent has nothing of it.
func (w *world) renewals() {
	w.t.Helper()
	sold := w.intents()
	for _, o := range w.rows(`SELECT id, provider, ref, status, reason, session_id FROM upstream_orders WHERE kind = 'renewal' ORDER BY seq`) {
		if sold[o[0]] != (o[3] == "confirmed") && !w.operated[o[0]] &&
			!(o[3] == "refused" && w.vanished[o[1]+" "+o[2]]) {
			w.t.Errorf("renewal %v: sold %v", o, sold[o[0]])
		}
		if o[3] == "confirmed" {
			w.count("renewal confirmed", 1)
		}
	}
}

// money checks that the ledger adds up, that no money is held for nothing, and that each
// static session paid once for its term, if it was delivered, and once for each renewal
// that was, also where its agent had given it up before.
func (w *world) money() {
	w.t.Helper()
	faults, _, err := w.db.Verify(context.Background())
	apptest.OK(w.t, err)
	for _, f := range faults {
		w.t.Errorf("audit: %s: %s: %s", f.Rule, f.Where, f.Detail)
	}
	price := map[string]int64{"30": int64(per30), "90": int64(per90)}
	for _, s := range w.rows(`SELECT id, type, status, held_trial + held_own, charged_trial + charged_own, activated_at, quantity, days, bytes,
		up + down, activated_at, expires_at, refunded_trial + refunded_own, reason, ended_at FROM sessions ORDER BY seq`) {
		held, charged := atoi(s[3]), atoi(s[4])
		if s[1] == "dynamic" {
			want := int64(billing.TrafficHold(atoi(s[8]), perGB)) - charged
			if s[2] != "active" {
				want = 0
			}
			if held != want || charged > atoi(s[9])*int64(perGB)/billing.GB {
				w.t.Errorf("session %v holds %d, want %d", s, held, want)
			}
			continue
		}
		if held != 0 {
			w.t.Errorf("session %v holds %d", s, held)
		}
		want, times, days := int64(0), 0, int64(0)
		if s[5] == "0" && len(w.rows(`SELECT id FROM upstream_orders WHERE session_id = ? AND kind = 'purchase'
			AND status = 'confirmed' AND state = 'live'`, s[0])) > 0 && s[2] == "terminated" {
			want, times = atoi(s[6])*price[s[7]], 1
			w.count("given up and paid", 1)
		}
		if s[5] != "0" {
			want, times, days = atoi(s[6])*price[s[7]], 1, atoi(s[7])
			got := (atoi(s[11]) - atoi(s[10])) / (24 * 3600 * 1_000_000)
			for _, o := range w.rows(`SELECT days, decided_at FROM upstream_orders WHERE session_id = ? AND kind = 'renewal' AND status = 'confirmed'
				ORDER BY seq`, s[0]) {
				end := atoi(s[14])
				// Of one that was confirmed in the microsecond of the end, the session's days show it.
				lived := end == 0 || atoi(o[1]) < end || atoi(o[1]) == end && got > days
				if lived || s[13] != "provider_lost" {
					want, times = want+atoi(s[6])*price[o[0]], times+1
				}
				if lived {
					days += atoi(o[0])
				}
			}
			if got != days {
				w.t.Errorf("session %v lasts %d days, want %d", s, got, days)
			}
		}
		entries := w.rows(`SELECT id FROM ledger_entries WHERE session_id = ? AND type = 'charge'`, s[0])
		if charged != want || len(entries) != times {
			w.t.Errorf("session %v was charged %d in %d entries, want %d in %d", s, charged, len(entries), want, times)
		}
		if refunded := atoi(s[12]); refunded > charged || refunded > 0 && s[13] != "provider_lost" {
			w.t.Errorf("session %v was refunded %d of %d", s, refunded, charged)
		}
	}
	var holds int64
	for _, a := range w.rows(`SELECT held_trial + held_own FROM wallets`) {
		holds += atoi(a[0])
	}
	for _, s := range w.rows(`SELECT held_trial + held_own FROM sessions WHERE status = 'active' AND type = 'dynamic'`) {
		holds -= atoi(s[0])
	}
	if holds != 0 {
		w.t.Errorf("%d are held for nothing", holds)
	}
}

// keysOnce checks that a key created one session that did not fail, however often it
// was used.
func (w *world) keysOnce() {
	w.t.Helper()
	for key, ids := range w.answered {
		n := 0
		for id := range ids {
			n += len(w.rows(`SELECT 1 FROM sessions WHERE id = ? AND status <> 'failed'`, id))
		}
		if n > 1 {
			w.t.Errorf("the key %s bought %v", key, ids)
		}
	}
	for _, o := range w.rows(`SELECT session_id FROM upstream_orders WHERE kind = 'purchase' AND status = 'confirmed' GROUP BY session_id HAVING COUNT(*) > 1`) {
		w.t.Errorf("session %v was bought twice", o)
	}
}

// silence checks that no secret is in the log, in an error of a caller, or in the
// database.
func (w *world) silence() {
	w.t.Helper()
	w.log.mu.Lock()
	log := bytes.Clone(w.log.Bytes())
	w.log.mu.Unlock()
	texts := map[string][]byte{"the log": log}
	for _, suffix := range []string{"", "-wal"} {
		if body, err := os.ReadFile(w.path + suffix); err == nil {
			texts["the database"+suffix] = body
		}
	}
	if len(log) == 0 || len(texts["the database"]) == 0 {
		w.t.Error("nothing was written at all")
	}
	for where, text := range texts {
		for _, secret := range secrets {
			if i := bytes.Index(text, []byte(secret)); i >= 0 {
				w.t.Errorf("%s is in %s: %q", secret, where, text[max(0, i-80):min(len(text), i+60)])
			}
		}
	}
	if *story {
		w.t.Logf("%s", log)
	}
}
