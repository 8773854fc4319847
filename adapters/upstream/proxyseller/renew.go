package upstream

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"agentproxy/domain/procurement"
)

// endless makes sure that none of the addresses renews itself, which would spend
// money that nobody asked for. Orders have no field for it, so it is switched off
// as soon as the addresses are there, and again whenever they are read and it is
// on: a renewal gives them new ids.
func (p *proxySellerStatic) endless(ctx context.Context, items []proxySellerItem) error {
	var ids []string
	for _, i := range items {
		if i.AutoRenew != "N" {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return p.change(ctx, safely, http.MethodPost, "/autoprolong/disable/"+p.section, map[string]any{"ids": ids}, nil)
}

// proxySellerRenewal is the body of prolong/calc and prolong/make.
type proxySellerRenewal struct {
	IDs     []string `json:"ids"`
	Period  string   `json:"periodId"`
	Coupon  string   `json:"coupon"`
	Payment string   `json:"paymentCode"`
}

// Renew extends all addresses of an order by one call. Their new ends are read
// afterwards: when none of them has moved, or they cannot be read, the outcome is
// Ambiguous, and later Read tells it.
func (p *proxySellerStatic) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
	period, err := proxySellerPeriod(in)
	if err != nil {
		return nil, err
	}
	items, err := p.items(ctx, ref)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, procurement.Refuse(procurement.NotFound, "no such order")
	}
	body := proxySellerRenewal{Period: period, Payment: "balance"}
	before := map[netip.Addr]time.Time{}
	for _, i := range items {
		addr, bad := netip.ParseAddr(i.Addr)
		end, odd := proxySellerDay(i.End)
		if bad != nil || odd != nil || i.ID == "" {
			return nil, proxySellerOdd(procurement.Temporary)
		}
		if i.CanProlong != nil && !*i.CanProlong {
			return nil, procurement.Refuse(procurement.Conflict, "the seller does not renew "+addr.String())
		}
		body.IDs = append(body.IDs, i.ID)
		before[addr] = end
	}
	var bill proxySellerBill
	if err := p.ask(ctx, "/prolong/calc/"+p.section, body, &bill); err != nil {
		return nil, err
	}
	cost, err := p.cost(bill, len(items))
	if err != nil {
		return nil, err
	}
	if in.MaxCost > 0 && cost > in.MaxCost {
		return nil, procurement.Refuse(procurement.Conflict, "the renewal costs "+cost.String()+", more than "+in.MaxCost.String())
	}
	bill = proxySellerBill{}
	if err := p.spend(ctx, in.Key, "/prolong/make/"+p.section, body, &bill); err != nil {
		return nil, err
	}
	if bill.OrderID == "" {
		return nil, proxySellerOdd(procurement.Ambiguous)
	}
	return p.renewed(ctx, ref, before)
}

// renewed compares the ends of an order's addresses with those before.
func (p *proxySellerStatic) renewed(ctx context.Context, ref string, before map[netip.Addr]time.Time) ([]procurement.Renewed, error) {
	items, err := p.items(ctx, ref)
	if err != nil {
		return nil, procurement.Refuse(procurement.Ambiguous, "renewed, and the new end could not be read")
	}
	if err := p.endless(ctx, items); err != nil {
		p.log.Warn("addresses may renew themselves until they are read again", "provider", p.name, "ref", ref, "err", err)
	}
	after := map[netip.Addr]time.Time{}
	for _, i := range items {
		if addr, err := netip.ParseAddr(i.Addr); err == nil {
			after[addr], _ = proxySellerDay(i.End)
		}
	}
	var done []procurement.Renewed
	moved := false
	for _, addr := range slices.SortedFunc(maps.Keys(before), netip.Addr.Compare) {
		r := procurement.Renewed{Addr: addr, ExpiresAt: after[addr]}
		if r.ExpiresAt.After(before[addr]) {
			moved = true
		} else {
			r.ExpiresAt, r.Err = before[addr], procurement.Refuse(procurement.Ambiguous, "paid, and its end has not moved")
		}
		done = append(done, r)
	}
	if !moved {
		return nil, procurement.Refuse(procurement.Ambiguous, "renewed, and no end has moved yet")
	}
	return done, nil
}
