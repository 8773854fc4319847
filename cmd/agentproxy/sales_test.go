package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentproxy/app/accounts"
	"agentproxy/app/payments"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	. "agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// sales is an installation that sold something.
type sales struct {
	*World
	agent, ended, live, address string // the ids of the buyer and of its sessions
}

// sell buys traffic of which a half was used, traffic that goes on, and an address of a seller.
func sell(t *testing.T) sales {
	configure(t, "")
	s := sales{World: Open(t, Options{System: true})}
	if s.Postgres() {
		t.Setenv("AGENTPROXY_DATABASE_URL", s.Database)
	} else {
		t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://"+s.Database)
	}
	t.Setenv("AGENTPROXY_SECRET", string(RootSecret))
	s.Seller.SetQuote("", procurement.Quote{Cost: Dollars("0.30"), Stock: procurement.StockYes})
	s.agent = s.RegisterFunded(40)
	s.ended, s.live, s.address = s.Buy(s.agent, Local).ID, s.Buy(s.agent, Local).ID, s.Buy(s.agent, RemoteStatic).ID
	s.UseBytes(s.ended, "l1", billing.GB/2)
	_, err := s.Sessions.Terminate(t.Context(), s.agent, s.ended)
	OK(t, err)
	return s
}

// sum adds up columns of a table.
func (s sales) sum(columns, from string) string {
	s.T.Helper()
	n, err := strconv.ParseInt(s.Column("SELECT CAST(COALESCE(SUM(" + columns + "), 0) AS BIGINT) FROM " + from)[0], 10, 64)
	OK(s.T, err)
	return domain.Money(n).String()
}

// one runs a command that lists one thing, and returns its fields.
func one(t *testing.T, args ...string) map[string]any {
	t.Helper()
	list := rows(t, done(t, args...))
	if len(list) != 1 {
		t.Fatalf("%q lists %v", args, list)
	}
	return list[0]
}

// has compares fields that a command printed.
func has(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %s is %v, want %v", what, name, got[name], want[name])
		}
	}
}

// TestCommandsShowWhatWasSold reads the fields of each command about sessions and money, and compares them
// with the rows of the ledger, the sessions and the orders.
func TestCommandsShowWhatWasSold(t *testing.T) {
	s := sell(t)
	ended := s.Read(s.agent, s.ended)
	has(t, "session show", object(t, done(t, "session", "show", s.ended)), map[string]any{"session_id": s.ended, "agent_id": s.agent,
		"type": "dynamic", "status": "terminated", "product_no": Local, "provider": "embedded", "used_bytes": float64(billing.GB / 2),
		"held": "0", "charged": ended.Money.Charged.Total().String(), "charged_trial": ended.Money.Charged.Trial.String(), "refunded": "0", "cost": "0"})
	bought := object(t, done(t, "session", "show", s.address))
	has(t, "session show", bought, map[string]any{"type": "static", "provider": "remote", "charged": "1", "cost": "0.3", "quantity": 1.0})
	has(t, "its order", bought["orders"].([]any)[0].(map[string]any), map[string]any{"kind": "purchase", "status": "confirmed", "cost": "0.3", "provider": "remote"})
	has(t, "session list", one(t, "session", "list", "--agent", s.agent, "--type", "static"), map[string]any{"session_id": s.address, "charged": "1", "refunded": "0"})
	if all := rows(t, done(t, "session", "list", "--agent", s.agent)); len(all) != 3 || len(rows(t, done(t, "session", "list", "--agent", "agt_x"))) != 0 {
		t.Errorf("the sessions are %v", all)
	}

	var booked any
	for range 2 { // with one reference it is booked once
		r := object(t, done(t, "refund", s.address, "--percent", "50", "--reason", "slow", "--ref", "t1", "--by", "ann"))
		has(t, "refund", r, map[string]any{"agent_id": s.agent, "session_id": s.address, "amount": "0.5"})
		if booked != nil && r["transaction_id"] != booked {
			t.Errorf("the refund is booked as %v and as %v", booked, r["transaction_id"])
		}
		booked = r["transaction_id"]
	}
	has(t, "session end", object(t, done(t, "session", "end", s.live, "--reason", "abuse", "--by", "ann")),
		map[string]any{"session_id": s.live, "agent_id": s.agent, "status": "terminated", "charged": "0", "refunded": "0"})
	has(t, "agent list", one(t, "agent", "list", "--search", s.agent, "--status", "active"), map[string]any{"agent_id": s.agent,
		"balance": s.Balance(s.agent).String(), "held": "0", "charged": s.sum("charged_trial + charged_own", "sessions"), "refunded": "0.5", "live_sessions": 1.0})
	has(t, "the refund that was kept", one(t, "audit", "list", "--by", "ann", "--action", "refund"), map[string]any{"by": "ann",
		"subject": s.address, "reason": "slow", "ref": "t1", "details": "percent=50"})
	has(t, "the end that was kept", one(t, "audit", "list", "--subject", s.live), map[string]any{"action": "session end", "reason": "abuse"})
	s.reports(t)
}

// The operator sees what each key of an agent may spend and has spent, and no key.
func TestAgentShowListsKeys(t *testing.T) {
	s := sell(t)
	key, err := s.Accounts.Keys.List(t.Context(), s.agent)
	OK(t, err)
	c := accounts.Caller{AgentID: s.agent, Scopes: account.Scopes}
	child, text, err := s.Accounts.Keys.Create(t.Context(), c, accounts.NewKey{Name: "child", Scopes: []account.Scope{account.SessionsWrite},
		Limits: account.Limits{Budget: account.KeyBudget{Total: new(Dollars("2")), PerPurchase: new(Dollars("1"))}, MaxSessions: 3, Own: true, Products: []string{Local}}})
	OK(t, err)
	_, err = s.Accounts.AuthenticateKey(t.Context(), text, nil)
	OK(t, err)
	OK(t, s.Accounts.Keys.StoreUses(t.Context()))
	views, err := s.Accounts.Keys.Views(t.Context(), s.agent)
	OK(t, err)
	used := timeText(views[0].Used)
	if used == "" {
		t.Error("the use of the key is not stored")
	}
	by, err := s.Accounts.AuthenticateKey(t.Context(), text, nil)
	OK(t, err)
	bought, err := s.Sessions.Create(t.Context(), sessions.Create{AgentID: s.agent, By: by.Spender(), Form: Form(Local)})
	OK(t, err)
	s.UseBytes(bought.View.ID, "l9", 8_785_000)
	out := done(t, "agent", "show", s.agent)
	keys := object(t, out)["keys"].([]any)
	Equal(t, "keys", len(keys), 2)
	has(t, "the child", keys[0].(map[string]any), map[string]any{"key_id": child.ID, "name": "child", "state": "restricted", "spent": "0.003514",
		"held": "0.396486", "left": "1", "budget_total": "2", "budget_daily": "", "budget_per_purchase": "1", "live_sessions": 1.0, "max_sessions": "3",
		"sessions": "own", "used_at": used, "hint": account.Hint(text)})
	has(t, "the first", keys[1].(map[string]any), map[string]any{"key_id": key[0].ID, "state": "free", "left": "", "spent": "0", "live_sessions": 0.0})
	if strings.Contains(out, text) {
		t.Error("the key itself is shown")
	}
	if status, out, _ := command("agent", "show", s.agent); status != 0 || !strings.Contains(out, "KEY_ID") || !strings.Contains(out, child.ID) || strings.Contains(out, text) {
		t.Errorf("%d\n%s", status, out)
	}
}

// TestCommandsShowWhatAgentsSee compares what is charged and held with what the agent is shown: what is used up within the
// hour is not booked yet.
func TestCommandsShowWhatAgentsSee(t *testing.T) {
	s := sell(t)
	s.UseBytes(s.live, "l2", 8_785_000)
	cost := s.Read(s.agent, s.live).Cost
	Equal(t, "the agent sees", cost.Charged, Dollars("0.003514"))
	want := map[string]any{"held": cost.Held.String(), "charged": "0.003514", "unbooked": "0.003514"}
	has(t, "session show", object(t, done(t, "session", "show", s.live)), want)
	has(t, "session list", one(t, "session", "list", "--status", "active", "--type", "dynamic"), want)
	b, err := s.Wallet.Balance(t.Context(), s.agent)
	OK(t, err)
	want = map[string]any{"held": b.Held.String(), "charged": b.Spent.String()}
	has(t, "agent show", object(t, done(t, "agent", "show", s.agent)), want)
	has(t, "agent list", one(t, "agent", "list", "--search", s.agent), want)
	for to, want := range map[string]string{"": "0.003514", "2026-01-02": "0"} {
		args := []string{"report", "margin", "--from", "2026-01-01"}
		if to != "" {
			args = append(args, "--to", to)
		}
		has(t, "report margin to "+to, object(t, done(t, args...)), map[string]any{"unbooked": want})
	}
	if status, out, _ := command("report", "margin"); status != 0 || !strings.Contains(out, "0.003514 USD that live sessions used up") {
		t.Errorf("%d\n%s", status, out)
	}
}

// reports compares the margin by each kind of line with what the sessions and the orders have.
func (s sales) reports(t *testing.T) {
	t.Helper()
	for _, by := range []string{"provider", "product", "agent", "day"} {
		r := object(t, done(t, "report", "margin", "--by", by, "--to", "2029-01-01", "--from", "2020-01-01"))
		total, ledger := r["total"].(map[string]any), r["ledger"].(map[string]any)
		has(t, "the total by "+by, total, map[string]any{"cost": s.sum("cost", "upstream_orders WHERE status = 'confirmed'"),
			"charged": s.sum("charged_trial + charged_own", "sessions"), "refunded": s.sum("refunded_trial + refunded_own", "sessions"),
			"trial": s.sum("charged_trial - refunded_trial", "sessions"), "paid": s.sum("charged_own - refunded_own", "sessions"),
			"margin": (Dollars(total["paid"].(string)) - Dollars(total["given"].(string)) - Dollars(total["cost"].(string))).String(),
			"orders": 1.0, "unpriced_orders": 0.0, "unpriced_sessions": 0.0, "estimated": "0",
			"given": s.sum("-counter", "ledger_entries WHERE account = 'corrections'")})
		has(t, "the ledger", ledger, map[string]any{"revenue": s.sum("charged - refunded", "wallets")})
		for _, column := range []string{"charged", "refunded", "trial", "paid", "given", "cost", "margin"} {
			var sum domain.Money
			for _, l := range r["lines"].([]any) {
				sum += Dollars(l.(map[string]any)[column].(string))
			}
			Equal(t, "the lines' "+column+" by "+by, sum, Dollars(total[column].(string)))
		}
	}
}

// TestCommandsShowWhereMoneyComesIn lists an order of payment, and writes a configuration.
func TestCommandsShowWhereMoneyComesIn(t *testing.T) {
	s := sell(t)
	orders := payments.NewOrders(payments.Config{}, s.Store, s.World.Clock, s.IDs, fake.NewChain("devchain", fake.Start), fake.NewKeys("a"))
	order, err := orders.Create(t.Context(), payments.CreateOrder{AgentID: s.agent, Amount: 5 * domain.Dollar})
	OK(t, err)
	has(t, "recharge list", one(t, "recharge", "list"), map[string]any{"order_id": order.View.ID, "agent_id": s.agent, "amount": "5",
		"wallet_address": order.View.Address})
	has(t, "recharge addresses", one(t, "recharge", "addresses"), map[string]any{"agent_id": s.agent, "index": 1.0,
		"address": order.View.Address})
	has(t, "config init", object(t, done(t, "config", "init", "new.yaml")), map[string]any{"file": "new.yaml",
		"next": "AGENTPROXY_CONFIG=new.yaml agentproxy config check"})
}
