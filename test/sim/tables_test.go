package sim_test

import (
	"encoding/json"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/domain/webhook"
)

// tables is everything that the database holds about recharges.
type tables struct {
	owners    map[string]string // agent of each address
	orders    map[string]recharge.Order
	transfers map[recharge.Key]recharge.Transfer
	credits   []credit
	events    map[string][]webhook.Type // by order, oldest first
	keys      map[string]bool           // of events
	balances  map[string]domain.Money
	through   map[string]time.Time
	aside     map[recharge.Key]bool // what could not be booked time after time, and is tried again
	rest      int64                 // the block up to which the addresses are read that no order awaits a payment at
}

type credit struct {
	agent, ref, order string
	amount            domain.Money
}

func ref(k recharge.Key) string { return fmt.Sprintf("usdt:%s:%s:%d", k.Network, k.TxID, k.LogIndex) }

// readTables reads the tables as they are: it repeats none of the program's own code.
func (w *world) readTables() (b tables) {
	b = tables{owners: map[string]string{}, orders: map[string]recharge.Order{}, transfers: map[recharge.Key]recharge.Transfer{},
		events: map[string][]webhook.Type{}, keys: map[string]bool{}, balances: map[string]domain.Money{}, through: map[string]time.Time{},
		aside: map[recharge.Key]bool{}}
	w.rows(`SELECT network, tx_id, log_index FROM recharge_aside`, func(scan func(...any)) {
		var k recharge.Key
		scan(&k.Network, &k.TxID, &k.LogIndex)
		b.aside[k] = true
	})
	w.rows(`SELECT address, agent_id, read_through FROM recharge_addresses`, func(scan func(...any)) {
		var address, agent string
		var through int64
		scan(&address, &agent, &through)
		b.owners[address], b.through[address] = agent, time.UnixMicro(through).UTC()
	})
	w.rows(`SELECT final_number FROM recharge_marks WHERE network = '`+network+`/rest'`, func(scan func(...any)) { scan(&b.rest) })
	w.rows(`SELECT id, agent_id, network, address, amount, received, status, created_at, expires_at, paid_at FROM recharge_orders`,
		func(scan func(...any)) {
			var o recharge.Order
			var created, expires, paid int64
			scan(&o.ID, &o.AgentID, &o.Network, &o.Address, &o.Amount, &o.Received, &o.Status, &created, &expires, &paid)
			o.CreatedAt, o.ExpiresAt = time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC()
			if paid != 0 {
				o.PaidAt = time.UnixMicro(paid).UTC()
			}
			b.orders[o.ID] = o
		})
	w.rows(`SELECT network, tx_id, log_index, from_address, to_address, amount, block, block_time, state, agent_id, order_id
		FROM recharge_transfers`, func(scan func(...any)) {
		var t recharge.Transfer
		var at int64
		scan(&t.Network, &t.TxID, &t.LogIndex, &t.From, &t.To, &t.Amount, &t.Block, &at, &t.State, &t.AgentID, &t.OrderID)
		t.BlockTime = time.UnixMicro(at).UTC()
		b.transfers[t.Key] = t
	})
	w.rows(`SELECT agent_id, ref, order_id, trial + own, type FROM ledger_entries ORDER BY agent_id, ord`, func(scan func(...any)) {
		var c credit
		var of string
		scan(&c.agent, &c.ref, &c.order, &c.amount, &of)
		if of != "recharge" {
			w.fail("the ledger has an entry of type %s", of)
		}
		b.credits = append(b.credits, c)
	})
	w.rows(`SELECT agent_id, trial + own FROM wallets`, func(scan func(...any)) {
		var agent string
		var balance domain.Money
		scan(&agent, &balance)
		b.balances[agent] = balance
	})
	w.rows(`SELECT type, data, id FROM outbox ORDER BY seq`, func(scan func(...any)) {
		var of webhook.Type
		var text, id string
		scan(&of, &text, &id)
		var data struct {
			Order  string `json:"order_id"`
			Status string `json:"status"`
		}
		if err := json.Unmarshal([]byte(text), &data); err != nil || string(of) != "recharge."+data.Status {
			w.fail("event %s has the data %s", of, text)
		}
		b.events[data.Order], b.keys[id] = append(b.events[data.Order], of), true
	})
	return b
}

func (w *world) rows(query string, each func(scan func(...any))) {
	rows, err := w.db.Writer().Query(query)
	if err != nil {
		w.fail("%s: %v", query, err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		each(func(into ...any) {
			if err := rows.Scan(into...); err != nil {
				w.fail("%s: %v", query, err)
			}
		})
	}
	if err := rows.Err(); err != nil {
		w.fail("%s: %v", query, err)
	}
}
