package contract

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/fair"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var orderTurnClaims = []claim{
	{"the orders that are due are listed in turns by agent", upstreamDueByAgent},
	{"the live traffic of a provider is listed, the newest first", upstreamLiveTraffic},
	{"the last usage count of each provider is kept", usageCountsKept},
	{"of each agent the oldest order that waits is listed, with its party and when that was served", upstreamWaiting},
}

// ofAgents stores a session of each agent, named by its letter, for as many orders of a
// provider, which it returns.
func ofAgents(t *testing.T, st ports.Store, provider, agents string) (list []procurement.Order) {
	for i, agent := range agents {
		n := len(provider)*1000 + i
		addSessions(t, st, dynamicSession(string(agent), fmt.Sprintf("sess_%d", n)))
		list = append(list, upstreamOrder(n, provider))
	}
	return list
}

func upstreamDueByAgent(t *testing.T, st ports.Store) {
	one, three := ofAgents(t, st, "one", "aaaaabbc"), ofAgents(t, st, "three", "aa")
	for i := range one {
		one[i].NextAt = storeNow.Add(time.Duration(i) * time.Second)
	}
	for i := range three {
		three[i].NextAt = storeNow
	}
	again := renewalOf(one[0], 99)
	again.NextAt = storeNow.Add(time.Second)
	addUpstream(t, st, append(append(one, again), three...)...)
	for limit, want := range map[int][]int{1: {0}, 3: {0, 5, 7}, 5: {0, 5, 7, 1, 6}, 9: {0, 5, 7, 1, 6, 2, 3, 4}} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			due, err := tx.Orders().Due(ctx, storeNow.Add(time.Hour), limit)
			var got []string
			var others int
			for _, o := range due {
				if o.Provider == "three" {
					others++
					continue
				}
				got = append(got, o.SessionID+" "+o.AgentID)
			}
			var wanted []string
			for _, i := range want {
				wanted = append(wanted, one[i].SessionID+" "+"aaaaabbc"[i:i+1])
			}
			sameList(t, fmt.Sprint("at most ", limit), wanted, got, err)
			if others != min(limit, 2) {
				t.Errorf("at most %d: %d of another provider", limit, others)
			}
			return nil
		})
	}
}

func upstreamWaiting(t *testing.T, st ports.Store) {
	// b and f have registered from one network; c, of it too, was verified.
	for id, from := range map[string]string{"b": "198.51.100.7", "c": "198.51.100.8", "f": "198.51.100.9"} {
		update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			a := storeAgent(id)
			a.Origin.Addr = netip.MustParseAddr(from)
			if id == "c" {
				a.VerifiedFor = "a contract"
			}
			if a.Referrer, err = tx.Referrers().Default(ctx); err != nil {
				return err
			}
			if err := tx.Agents().Insert(ctx, a); err != nil {
				return err
			}
			return tx.Ledger().Open(ctx, billing.Wallet{AgentID: id})
		})
	}
	mustPost(t, st, fund("f", "fund:f", domain.Dollar-1))
	mustPost(t, st, adjust("f", "adjust:f", 1))
	mustPost(t, st, fund("b", "fund:b", domain.Dollar-1))
	parties := map[string]fair.Party{"a": {Key: "a"}, "b": {Key: "198.51.100.0/24"}, "c": {Key: "c", Funded: true},
		"d": {Key: "d"}, "f": {Key: "198.51.100.0/24", Funded: true}}
	list := ofAgents(t, st, "one", "aaabbcdf")
	sent := func(o procurement.Order, after time.Duration) procurement.Order {
		o = as(o, procurement.Sent)
		o.SentAt = storeNow.Add(after)
		return o
	}
	list[0], list[3] = sent(list[0], time.Minute), sent(list[3], time.Second)
	list[5].Intent.SKU, list[6].Intent.Location.Country = "isp-2", "US"
	list[7].Intent.SKU = "isp-3"
	addUpstream(t, st, list...)
	addUpstream(t, st, ofAgents(t, st, "three", "e")...)
	waiting := func(i int, agent string, served time.Duration) procurement.Waiting {
		w := procurement.Waiting{OrderID: list[i].ID, Party: parties[agent], PlannedAt: list[i].PlannedAt}
		if served > 0 {
			w.ServedAt = storeNow.Add(served)
		}
		return w
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for claim, c := range map[string]struct {
			of    procurement.Order
			limit int
			want  []procurement.Waiting
		}{
			"the oldest":            {list[1], 10, []procurement.Waiting{waiting(1, "a", time.Minute), waiting(4, "b", time.Second)}},
			"itself too":            {list[2], 10, []procurement.Waiting{waiting(1, "a", time.Minute), waiting(4, "b", time.Second), waiting(2, "a", time.Minute)}},
			"at most one":           {list[1], 1, []procurement.Waiting{waiting(1, "a", time.Minute)}},
			"of another SKU":        {list[5], 10, []procurement.Waiting{waiting(5, "c", 0)}},
			"of a network":          {list[7], 10, []procurement.Waiting{waiting(7, "f", time.Second)}},
			"of another country":    {list[6], 10, []procurement.Waiting{waiting(6, "d", 0)}},
			"of any SKU and place":  {procurement.Order{ID: "ord_x", Provider: "one"}, 2, []procurement.Waiting{waiting(1, "a", time.Minute), waiting(4, "b", time.Second)}},
			"of a provider without": {procurement.Order{ID: "ord_x", Provider: "two"}, 10, nil},
		} {
			got, err := tx.Orders().Waiting(ctx, c.of, account.Funding(domain.Dollar), c.limit)
			sameList(t, claim, c.want, got, err)
		}
		return nil
	})
}

func upstreamLiveTraffic(t *testing.T, st ports.Store) {
	list := ofAgents(t, st, "one", "abcdef")
	for i := range list {
		list[i] = confirmed(list[i], fmt.Sprint("R/", i))
		list[i].Intent.Type = session.Dynamic
	}
	list[1].ClosedAt = storeNow
	list[2].Intent.Type = session.Static
	list[3] = as(list[3], procurement.Unknown)
	ended := dynamicSession("z", "sess_ended")
	ended.Status = session.Terminated
	addSessions(t, st, ended)
	list[4].SessionID, list[4].Intent.SessionID = ended.ID, ended.ID
	addUpstream(t, st, list...)
	other := ofAgents(t, st, "three", "a")[0]
	other = confirmed(other, "R/0")
	other.Intent.Type = session.Dynamic
	addUpstream(t, st, other)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for limit, want := range map[int][]ports.LiveOrder{
			1: {{Ref: "R/5", SessionID: list[5].SessionID, Product: "dyn_1"}},
			9: {{Ref: "R/5", SessionID: list[5].SessionID, Product: "dyn_1"}, {Ref: "R/0", SessionID: list[0].SessionID, Product: "dyn_1"}},
		} {
			got, err := tx.Orders().LiveTraffic(ctx, "one", limit)
			sameList(t, fmt.Sprint("at most ", limit), want, got, err)
		}
		return nil
	})
}

func usageCountsKept(t *testing.T, st ports.Store) {
	one := ports.UsageCount{Provider: "one", At: storeNow, Products: []procurement.Counted{{Product: "a", Sessions: 2, Seller: 1 << 60, Charged: 3}}}
	two := ports.UsageCount{Provider: "two", At: storeNow.Add(time.Hour)}
	again := ports.UsageCount{Provider: "one", At: storeNow.Add(24 * time.Hour)}
	want := map[string]ports.UsageCount{}
	for _, c := range []ports.UsageCount{{}, one, two, again} {
		if c.Provider != "" {
			update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.UsageCounts().Put(ctx, c) })
			want[c.Provider] = c
		}
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.UsageCounts().All(ctx)
			if !reflect.DeepEqual(got, want) || err != nil {
				t.Errorf("they are %+v, want %+v; %v", got, want, err)
			}
			return nil
		})
	}
}
