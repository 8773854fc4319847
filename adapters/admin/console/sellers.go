package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/ordering"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// The balances of sellers are read together, at most once in readEvery, each within readWithin.
const (
	readEvery  = time.Minute
	readWithin = 5 * time.Second
)

// sellerCache keeps what sellers last answered.
type sellerCache struct {
	mu   sync.Mutex
	at   time.Time
	last map[string]sellerState
}

type sellerState struct {
	balance procurement.ProviderBalance
	err     error
}

// states returns the balances of sellers. Concurrent callers wait for one look.
func (c *sellerCache) states(ctx context.Context, list []ports.Provider, now time.Time) map[string]sellerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && now.Sub(c.at).Abs() < readEvery {
		return c.last
	}
	answers := make([]sellerState, len(list))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
	defer cancel()
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() {
			b, err := p.Balance(ctx)
			if procurement.ClassOf(err) == procurement.Unsupported {
				err = nil
			}
			answers[i] = sellerState{b, err}
		})
	}
	wg.Wait()
	c.at, c.last = now, map[string]sellerState{}
	for i, p := range list {
		c.last[p.Name()] = answers[i]
	}
	return c.last
}

// sellersPage shows providers, and the orders that wait for a decision.
func (c *Console) sellersPage(r *http.Request) (page, error) {
	p, ctx := page{Title: "Sellers"}, r.Context()
	owed, err := c.use.Owed.Owed(ctx)
	if err != nil {
		return p, err
	}
	frozen, err := c.use.Orders.List(ctx, ordering.ListOrders{Filter: ports.OrderFilter{Frozen: true},
		Page: domain.Page{Number: 1, Size: 100}})
	if err != nil {
		return p, err
	}
	at := pageOf(r)
	all, err := c.use.Orders.List(ctx, ordering.ListOrders{Filter: ports.OrderFilter{Provider: r.URL.Query().Get("seller"),
		Status: procurement.Status(r.URL.Query().Get("status"))}, Page: at})
	if err != nil {
		return p, err
	}
	list := c.use.Catalog.Providers()
	slices.SortFunc(list, func(a, b ports.Provider) int { return cmp.Compare(a.Name(), b.Name()) })
	states := c.sellers.states(ctx, list, c.use.Clock.Now())
	t := &table{Columns: []string{"Seller", "Health", "Balance", "Live orders", "Missing", "Late", "Stock",
		"Compare"}}
	for _, s := range list {
		w := owed[s.Name()]
		compare := cell{Text: "–"}
		if !s.Capabilities().InProcess {
			compare = cell{Links: []button{do("orders-reconcile", "compare", s.Name())}}
		}
		t.Rows = append(t.Rows, row{ID: "seller-" + s.Name(), Cells: []cell{link(s.Name(), "/sellers/"),
			healthOf(states[s.Name()], w),
			balanceOf(states[s.Name()]), number(w.Live), number(w.Missing), number(w.Late), stockOf(s), compare}})
	}
	o := section{Title: "Orders", Table: orderTable("order-", all.Items), Filter: []field{given(r, "seller", "Seller"),
		choice(r, "status", "Status", "planned", "sent", "confirmed", "refused", "unknown")}}
	p.Sections = []section{{Title: "Sellers", Table: t, Note: "Balances are asked for at most once a minute.",
		Links: []button{{Text: "Compare all lists", Href: "/do/orders-reconcile"},
			{Text: "Quality of exits", Href: "/exits/quality"}}},
		{Title: "Frozen orders", ID: "frozen",
			Note:  "Their outcome is unknown for a day. Look at the seller, then decide.",
			Table: orderTable("frozen-", frozen.Items)}, o.paged(r, at, all.Total)}
	return p, nil
}

func healthOf(s sellerState, w procurement.Owed) cell {
	switch {
	case s.err != nil:
		return cell{Text: "does not answer: " + string(procurement.ClassOf(s.err)), Tag: "bad"}
	case w.SellersFault():
		return cell{Text: "misses many orders", Tag: "bad"}
	case w.Late > 0:
		return cell{Text: "late", Tag: "warn"}
	}
	return cell{Text: "ok", Tag: "good"}
}

func balanceOf(s sellerState) cell {
	if !s.balance.Known {
		return cell{Text: "not given", Num: true}
	}
	return cell{Text: ui.USD(s.balance.Amount), Num: true}
}

func stockOf(p ports.Provider) cell {
	k, ok := p.(ports.Maintainer)
	if !ok {
		return cell{Text: "–"}
	}
	stock, parts := k.Stock(), []string{}
	for _, state := range slices.Sorted(maps.Keys(stock)) {
		parts = append(parts, fmt.Sprintf("%d %s", stock[state], state))
	}
	return text(strings.Join(parts, ", "))
}
